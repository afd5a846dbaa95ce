"""Long measurements: a Run button starts them, and they have a progress bar and a Stop button.

`measurement` computes one result, `measurements` several that are cached one by one. What a reader
opens a view for starts `at_once` if it takes half a minute or less: runs compute in turns.
"""

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, TypeVar

import streamlit as st

from explorer.analysis.batched_passes import MOST, QUICK
from explorer.analysis.singular_values import SingularValuesError
from explorer.app.messages import say
from explorer.app.progress import bar
from explorer.app.session import state_of
from explorer.catalog import ModelError
from explorer.catalog.opened_model import OpenModel
from explorer.inference.forward_pass import ForwardPassError
from explorer.inference.results_cache import cached, if_cached
from explorer.system.cooperative import Report
from models.gradients import GradientError

SECONDS_PER_QUICK, AT_ONCE, MOMENT = 3, 10 * QUICK, QUICK // 50
Result = TypeVar("Result")


class StartedMeasurements(dict[str, Hashable]):
    """By the name of a measurement the key it was started for, and by "stopped …" that stopped."""


def measurement(
    opened: OpenModel, name: str, key: Hashable, make: Callable[[Report], Result], **how: Any
) -> Result | None:
    """The cached result of `make`; None if it is not computed yet, and the page says why.

    `make` gets a function that reports the share that is done. A new key under the same `name`
    needs a new click. `how` has the other arguments of `measurements`.
    """
    results = measurements(opened, name, [key], lambda _, report: make(report), **how)
    return None if results is None else results[0]


def measurements(
    opened: OpenModel,
    name: str,
    keys: Sequence[Hashable],
    make: Callable[[int, Report], Result],
    *,
    cost: int,
    doing: str,
    too_long: str = "",
    at_once: bool = False,
) -> list[Result] | None:
    """The result of `make` for the place of each key; None if some are not computed yet.

    A stopped run keeps its results, and the next continues from there. `cost` is that of all keys
    in multiplications; if it is too high, the page shows `too_long`.
    """
    pieces = [if_cached(opened, key) for key in keys]
    missing = sum(result is None for result in pieces)
    if not missing:
        return pieces
    if too_long and cost > MOST:
        st.text(too_long)
        return None
    rest = cost * missing // len(keys)
    if not is_started(name, (opened.name, tuple(keys)), cost, f"{doing}:", rest, AT_ONCE * at_once):
        if missing < len(keys):
            st.text(f"Stopped: {len(keys) - missing:,} of {len(keys):,} pieces are measured.")
        return None
    results: list[Result] = []
    try:
        seconds = SECONDS_PER_QUICK * rest / QUICK
        with bar(doing, partial(stop, name) if cost > MOMENT else None, seconds) as report:
            for at, key in enumerate(keys):

                def make_one(at: int = at) -> Result:
                    return make(at, lambda share: report((at + share) / len(keys)))

                results.append(cached(opened, key, make_one))
                report((at + 1) / len(keys))
    except (GradientError, ForwardPassError, ModelError, SingularValuesError) as error:
        say(str(error))
        return None
    return results


def is_started(
    name: str, key: Hashable, cost: int, doing: str = "This takes", rest: int = 0, most: int = 0
) -> bool:
    """Whether to run now: if it is quick and was not stopped, else after a click for this key.

    `rest` is the cost that a stopped run has left; it needs a click if the whole needs one.
    """
    started = state_of(StartedMeasurements)
    if cost <= (most or QUICK) and started.get(f"stopped {name}") != key:
        _start(name, key)
    if started.get(name) == key:
        return True
    seconds = SECONDS_PER_QUICK * (rest or cost) / QUICK
    st.text(f"{doing} about {max(2, seconds):.0f} seconds.")
    st.button("Run", key=f"begin_{name}", on_click=_start, args=(name, key), type="primary")
    return False


def _start(name: str, key: Hashable) -> None:
    state_of(StartedMeasurements)[name] = key


def stop(name: str, doing: str = "") -> None:
    started = state_of(StartedMeasurements)
    started[f"stopped {name}"] = started.pop(name, started.get(f"stopped {name}"))
