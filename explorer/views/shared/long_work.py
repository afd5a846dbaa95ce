"""Work of more than seconds: behind a Run button, with a bar and a Stop button, piece by piece."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import streamlit as st

from explorer.analysis.batched_passes import MOST, QUICK
from explorer.app.messages import say
from explorer.app.progress import bar
from explorer.app.session import state_of
from explorer.catalog.open_model import OpenModel
from explorer.inference.forward_pass import ForwardPassError
from explorer.inference.results_cache import if_kept, kept
from models.gradients import GradientError

SECONDS_PER_QUICK = 3
Made = TypeVar("Made")


class LongWork(dict[str, Hashable]):
    """By view, what its many passes were started for."""


def is_started(name: str, asked: Hashable, multiplications: int, doing: str = "This takes") -> bool:
    """Whether to run now: at once where it is quick, else after a click for exactly this."""
    if multiplications <= QUICK or state_of(LongWork).get(name) == asked:
        return True
    seconds = SECONDS_PER_QUICK * multiplications / QUICK
    st.text(f"{doing} about {seconds:.0f} seconds.")
    st.button("Run", key=f"begin_{name}", on_click=_start, args=(name, asked), type="primary")
    return False


def _start(name: str, asked: Hashable) -> None:
    state_of(LongWork)[name] = asked


def piece_by_piece(
    opened: OpenModel,
    name: str,
    keys: Sequence[tuple[Hashable, ...]],
    make: Callable[[int], Made],
    size: Callable[[Made], int],
    cost: int,
    doing: str,
    too_long: str,
) -> list[Made] | None:
    """What `make` gives for each key, kept one by one; None where not all are there yet.

    A run that is stopped keeps the pieces that it made, and the next goes on from there. `cost` is
    that of all pieces, in multiplications; where it is too much, `too_long` is said.
    """
    known = [if_kept(opened, key) for key in keys]
    missing = sum(each is None for each in known)
    if not missing:
        return known
    if cost > MOST:
        st.text(too_long)
        return None
    cost = cost * missing // len(keys)
    if not is_started(name, (opened.name, tuple(keys)), cost, f"{doing}:"):
        if missing < len(keys):
            st.text(f"Stopped: {len(keys) - missing:,} of {len(keys):,} pieces are measured.")
        return None
    found: list[Made] = []
    try:
        with stoppable(name, cost), bar(doing) as report:
            for at, key in enumerate(keys):
                found.append(kept(opened, key, lambda: make(at), size))  # noqa: B023
                report((at + 1) / len(keys))
    except (GradientError, ForwardPassError) as error:
        say(str(error))
        return None
    return found


@contextmanager
def stoppable(name: str, cost: int) -> Iterator[None]:
    """A Stop button beside work that was started under this name, while it lasts."""
    place = st.empty()
    if cost > QUICK:
        place.button("Stop", key=f"stop_{name}", on_click=_stop, args=(name,))
    yield
    place.empty()


def _stop(name: str) -> None:
    state_of(LongWork).pop(name, None)
