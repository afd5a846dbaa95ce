"""Heavy work of a page: a bar while it lasts, and nothing where it is done at once."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import streamlit as st

from explorer.system import cooperative

Step = TypeVar("Step")

SILENT = 0.1
"""Seconds of work without a bar, and between two updates of it."""


@contextmanager
def bar(doing: str) -> Iterator[Callable[[float], None]]:
    """A bar; call what it yields with the share of the work that is done."""
    place = st.empty()
    begun = shown = time.monotonic()

    def report(done: float) -> None:
        nonlocal shown
        cooperative.step()
        now = time.monotonic()
        if now - shown > SILENT and 0 < done < 1:
            shown, left = now, (now - begun) * (1 - done) / done
            place.progress(done, f"{doing}: {done:.0%}, about {left:.0f} s left")

    try:
        yield report
    finally:
        place.empty()


def with_bar(
    steps: Iterable[Step], total: int, doing: str, size: Callable[[Step], int] = lambda _: 1
) -> list[Step]:
    """All steps; `total` is what their sizes add up to."""
    found: list[Step] = []
    done = 0
    with bar(doing) as report:
        for step in steps:
            found.append(step)
            done += size(step)
            report(done / total)
    return found
