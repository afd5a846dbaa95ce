"""A few runs of pages at a time: many at once only take the interpreter from each other.

A fragment that is drawn alone is not within the run of its page, so it takes a turn of its own
(`@turn()` under `@st.fragment`). Only the curves of a training take none: again and again they
read a few lines of a file, and they would stand still behind the passes of others.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore, local

AT_ONCE = 2
LONGEST_WAIT = 1.0
"""Seconds after which a run goes on in any case: long work of others does not hold it up."""

_turns = BoundedSemaphore(AT_ONCE)
_here = local()
"""Whether this thread is in a turn already."""


@contextmanager
def turn() -> Iterator[None]:
    """Wait for one of the turns: one after another, fifty answers are all given sooner.

    Within a turn no other is waited for.
    """
    if getattr(_here, "is_in", False):
        yield
        return
    has_one = _turns.acquire(timeout=LONGEST_WAIT)
    _here.is_in = True
    try:
        yield
    finally:
        _here.is_in = False
        if has_one:
            _turns.release()
