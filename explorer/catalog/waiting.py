"""Waiting for what another thread makes: who waits looks up now and then, and may leave.

`cachetools.cached(cache, condition=PatientCondition())` makes a thing once however many threads
ask for it at once. If its maker fails, the next one tries.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition, Lock

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


class PatientLock:
    """A lock, to be taken by `with`, of which the same is true."""

    def __init__(self) -> None:
        self._lock = Lock()

    def __enter__(self) -> None:
        while not self._lock.acquire(timeout=LOOKS_UP):
            _end_if_unwanted()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
