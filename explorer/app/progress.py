"""A progress bar for heavy work; quick work shows none."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import streamlit as st

from explorer.system import cooperative

Step = TypeVar("Step")

SILENT = 0.1
"""Seconds of work before the bar appears, and between two updates of it."""


@contextmanager
def bar(doing: str) -> Iterator[Callable[[float], None]]:
    """A bar; call the function that it yields with the share of the work that is done."""
    place = st.empty()
    begun = updated = time.monotonic()

    def report(done: float) -> None:
        nonlocal updated
        cooperative.step()
        now = time.monotonic()
        if now - updated > SILENT and 0 < done < 1:
            updated, left = now, (now - begun) * (1 - done) / done
            place.progress(done, f"{doing}: {done:.0%}, about {left:.0f} s left")

    try:
        yield report
    finally:
        place.empty()


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
