"""A progress bar for heavy work; quick work shows none."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import streamlit as st

from explorer.app.messages import end_page
from explorer.app.session import state_of
from explorer.system import cooperative

Step = TypeVar("Step")

SILENT = 0.1
"""Seconds of work before the bar appears, and between two updates of it."""


class StoppedWork(set[str]):
    """What the reader has stopped waits for a click."""


@contextmanager
def bar(
    doing: str, on_stop: Callable[[str], None] | None = None, seconds: float = 0.0
) -> Iterator[Callable[[float], None]]:
    """A bar; call the function that it yields with the share of the work that is done.

    Where stopped work would begin again, the page ends with a button that begins it. With
    `on_stop`, which decides that itself, it can be stopped before the first report, and says what
    is computed and about how many seconds that takes, if they are known.
    """
    if doing in (stopped := state_of(StoppedWork)):
        st.text(f"Stopped: {doing[0].lower()}{doing[1:]}.")
        st.button("Run", f"run_{doing}", on_click=stopped.discard, args=(doing,), type="primary")
        end_page()
    button, place, begun = st.empty(), st.empty(), time.monotonic()
    updated, key = begun, f"stop_{doing}_{begun}"  # a run may do the same work twice
    if on_stop is not None:
        button.button("Stop", key=key, on_click=on_stop, args=(doing,))
        place.progress(0.0, doing + f": about {max(1.0, seconds):.0f} s" * bool(seconds))

    def report(done: float) -> None:
        nonlocal updated
        cooperative.step()
        now = time.monotonic()
        if now - updated > SILENT and 0 < done < 1:
            if on_stop is None and updated == begun:
                button.button("Stop", key=key, on_click=stopped.add, args=(doing,))
            updated, left = now, (now - begun) * (1 - done) / done
            place.progress(done, f"{doing}: {done:.0%}, about {left:.0f} s left")

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
