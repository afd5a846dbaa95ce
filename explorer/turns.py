"""A few runs of pages at a time: many at once only take the interpreter from each other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore

AT_ONCE = 2
LONGEST_WAIT = 1.0
"""Seconds after which a run goes on in any case: long work of others does not hold it up."""

_turns = BoundedSemaphore(AT_ONCE)


@contextmanager
def turn() -> Iterator[None]:
    """Wait for one of the turns: one after another, fifty answers are all given sooner."""
    has_one = _turns.acquire(timeout=LONGEST_WAIT)
    try:
        yield
    finally:
        if has_one:
            _turns.release()
