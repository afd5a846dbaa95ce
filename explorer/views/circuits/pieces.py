"""Long work of the Circuits page: piece by piece, each kept, with a bar and a Stop button."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import streamlit as st

from explorer.analysis.ablation import MOST, QUICK
from explorer.app.messages import say
from explorer.app.progress import bar
from explorer.app.session import session
from explorer.catalog.opened_model import Opened
from explorer.circuits.text_pairs import Question
from explorer.inference.forward_pass import ForwardPassError
from explorer.inference.results_cache import if_kept, kept
from explorer.views.interventions.many_passes import is_started
from models.gradients import GradientError

TOO_LONG = "So many passes of this model take too long: take fewer pairs, or shorten the texts."
Made = TypeVar("Made")


def piece_by_piece(
    opened: Opened,
    name: str,
    keys: Sequence[tuple[Hashable, ...]],
    make: Callable[[int], Made],
    size: Callable[[Made], int],
    cost: int,
    doing: str,
    too_long: str = TOO_LONG,
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
    if not is_started(name, (opened.name, tuple(keys)), cost):
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
    session().long_runs.pop(name, None)


def cost_of_passes(opened: Opened, question: Question) -> int:
    """Multiplications of one plain pass of every pair."""
    return sum(len(pair.clean) for pair in question.pairs) * _per_token(opened)


def cost_of_branches(opened: Opened, question: Question) -> int:
    """The same of one that branches off in the middle, and where the texts differ first."""
    differing = sum(len(pair.clean) - pair.differing[0] for pair in question.pairs)
    is_causal = opened.config.kind == "decoder"
    if not is_causal:
        return cost_of_passes(opened, question) // 2
    return differing * _per_token(opened) // 2


def _per_token(opened: Opened) -> int:
    blocks = opened.model.last_stack.blocks.parameters()
    return sum(each.numel() for each in blocks)
