"""Measurements of more than seconds: behind a Run button, with a bar and a Stop button.

`measurement` makes one result, `measurements` several that are kept one by one.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import streamlit as st

from explorer.analysis.batched_passes import MOST, QUICK
from explorer.analysis.singular_values import SingularValuesError
from explorer.app.messages import say
from explorer.app.progress import bar
from explorer.app.session import state_of
from explorer.catalog import ModelError
from explorer.catalog.opened_model import OpenModel
from explorer.inference.forward_pass import ForwardPassError
from explorer.inference.results_cache import if_kept, kept
from models.gradients import GradientError

SECONDS_PER_QUICK = 3
Result = TypeVar("Result")
Report = Callable[[float], None]


class StartedMeasurements(dict[str, Hashable]):
    """By the name of a measurement, what the reader started it for."""


def measurement(
    opened: OpenModel,
    name: str,
    key: Hashable,
    make: Callable[[Report], Result],
    *,
    cost: int,
    doing: str,
    too_long: str = "",
) -> Result | None:
    """What `make` gives, kept; None where it is not there yet, and the page says why.

    `make` is handed a function to report the share that is done. `cost` is in multiplications; of
    what is too much, `too_long` is said. Another key under the same `name` waits for another click.
    """
    results = _measure(opened, name, [key], lambda _, report: make(report), cost, doing, too_long)
    return None if results is None else results[0]


def measurements(
    opened: OpenModel,
    name: str,
    keys: Sequence[Hashable],
    make: Callable[[int], Result],
    *,
    cost: int,
    doing: str,
    too_long: str = "",
) -> list[Result] | None:
    """What `make` gives for the place of each key; None where not all of them are there yet.

    A run that is stopped keeps what it made, and the next goes on from there. `cost` is that of
    all keys.
    """
    return _measure(opened, name, keys, lambda at, _: make(at), cost, doing, too_long)


def _measure(
    opened: OpenModel,
    name: str,
    keys: Sequence[Hashable],
    make: Callable[[int, Report], Result],
    cost: int,
    doing: str,
    too_long: str,
) -> list[Result] | None:
    known = [if_kept(opened, key) for key in keys]
    missing = sum(result is None for result in known)
    if not missing:
        return known
    if too_long and cost > MOST:
        st.text(too_long)
        return None
    rest = cost * missing // len(keys)
    if not is_started(name, (opened.name, tuple(keys)), cost, f"{doing}:", rest):
        if missing < len(keys):
            st.text(f"Stopped: {len(keys) - missing:,} of {len(keys):,} pieces are measured.")
        return None
    results: list[Result] = []
    try:
        with stoppable(name, cost), bar(doing) as report:
            for at, key in enumerate(keys):

                def make_one(at: int = at) -> Result:
                    return make(at, lambda share: report((at + share) / len(keys)))

                results.append(kept(opened, key, make_one))
                report((at + 1) / len(keys))
    except (GradientError, ForwardPassError, ModelError, SingularValuesError) as error:
        say(str(error))
        return None
    return results


def is_started(
    name: str, key: Hashable, cost: int, doing: str = "This takes", rest: int | None = None
) -> bool:
    """Whether to run now: at once where it is quick, else after a click for exactly this key.

    `rest` is the cost of what a stopped run has left, which waits for a click as the whole does.
    """
    if cost <= QUICK or state_of(StartedMeasurements).get(name) == key:
        return True
    seconds = SECONDS_PER_QUICK * (cost if rest is None else rest) / QUICK
    st.text(f"{doing} about {max(2, seconds):.0f} seconds.")
    st.button("Run", key=f"begin_{name}", on_click=_start, args=(name, key), type="primary")
    return False


@contextmanager
def stoppable(name: str, cost: int) -> Iterator[None]:
    """A Stop button beside a measurement of this name, while it lasts."""
    place = st.empty()
    if cost > QUICK:
        place.button("Stop", key=f"stop_{name}", on_click=_stop, args=(name,))
    yield
    place.empty()


def _start(name: str, key: Hashable) -> None:
    state_of(StartedMeasurements)[name] = key


def _stop(name: str) -> None:
    state_of(StartedMeasurements).pop(name, None)
