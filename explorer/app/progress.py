"""A progress bar for heavy work; quick work shows none."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

import streamlit as st

from explorer.app.messages import end_page
from explorer.app.session import state_of
from explorer.system import cooperative

Step = TypeVar("Step")

SILENT, SHORT = 0.1, 0.5
"""Seconds of work before the bar appears, and between two updates of it; before Stop appears."""


class StoppedWork(set[str]):
    """What the reader has stopped waits for a click."""


@contextmanager
def bar(
    doing: str, on_stop: Callable[[str], None] | None = None, stop_after: float = SHORT
) -> Iterator[Callable[[float], None]]:
    """A bar; call the function that it yields with the share of the work that is done.

    Where work that was stopped would begin again, the page ends with a button that begins it.
    """
    if doing in (stopped := state_of(StoppedWork)):
        run = partial(stopped.discard, doing)
        st.text(f"Stopped: {doing[0].lower()}{doing[1:]}.")
        st.button("Run", key=f"run_{doing}", on_click=run, type="primary")
        end_page()
    button, place, begun = st.empty(), st.empty(), time.monotonic()
    updated, key = begun, ""

    def offer_stop(now: float) -> None:
        nonlocal key
        if not key and now - begun >= stop_after:
            key = f"stop_{doing}_{begun}"  # a run may do the same work twice
            button.button("Stop", key=key, on_click=on_stop or stopped.add, args=(doing,))

    def report(done: float) -> None:
        nonlocal updated
        cooperative.step()
        now = time.monotonic()
        if now - updated > SILENT and 0 < done < 1:
            updated, left = now, (now - begun) * (1 - done) / done
            place.progress(done, f"{doing}: {done:.0%}, about {left:.0f} s left")
            offer_stop(now)

    offer_stop(begun)
    try:
        yield report
    finally:
        place.empty()
        button.empty()


def with_bar(
    steps: Iterable[Step], total: int, doing: str, size: Callable[[Step], int] = lambda _: 1
) -> list[Step]:
    """A list of all steps, whose sizes add up to `total`."""
    results: list[Step] = []
    done = 0
    with bar(doing) as report:
        for step in steps:
            results.append(step)
            done += size(step)
            report(done / total)
    return results
