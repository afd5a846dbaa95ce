"""Waiting for what another thread makes: who waits looks up now and then, and may leave.

`cachetools.cached(cache, condition=PatientCondition())` makes a thing once however many threads
ask for it at once. If its maker fails, the next one tries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition

LOOKS_UP = 0.1
"""Seconds of waiting after which it is asked again whether there is still a reader."""


def _go_on() -> None:
    """Outside of the app nobody leaves."""


_end_if_unwanted: Callable[[], None] = _go_on


def end_runs_by(end_if_unwanted: Callable[[], None]) -> None:
    """How, from now on, the run ends of a reader who has gone or wants something else.

    It is called in the thread that waits and raises where it must not go on.
    """
    global _end_if_unwanted
    _end_if_unwanted = end_if_unwanted


class PatientCondition(Condition):
    """One whose waiting ends with the run of the reader who waits."""

    def wait(self, timeout: float | None = None) -> bool:
        """For a while that is never longer than LOOKS_UP, so wait in a loop."""
        is_notified = super().wait(LOOKS_UP if timeout is None else min(timeout, LOOKS_UP))
        if not is_notified:
            self.release()
            try:
                _end_if_unwanted()
            finally:
                self.acquire()
        return is_notified


class Budget:
    """Bytes that are taken from at once, by `with budget.spend(size)`.

    `free` says how many there are. Who begins it asks; as long as somebody takes some, they are
    counted here, since what is free says nothing of those that are not yet taken.
    """

    def __init__(self, free: Callable[[], int]) -> None:
        self._free = free
        self._changed = PatientCondition()
        self._spending = 0
        self._left = 0

    @contextmanager
    def spend(self, size: int) -> Iterator[None]:
        """Wait until so many are left, or until nobody takes any: then it may be too much."""
        with self._changed:
            while self._spending and size > self._left:
                self._changed.wait()
            if not self._spending:
                self._left = self._free()
            self._spending += 1
            self._left -= size
        try:
            yield
        finally:
            with self._changed:
                self._spending -= 1
                self._changed.notify_all()
