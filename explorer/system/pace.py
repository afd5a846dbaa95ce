"""How often work during training is due, so that it takes a bounded share of the time."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Pace:
    """Says when some work is due again: at least `every` seconds after the last time, and so rarely
    that it takes at most `share` of the time.
    """

    def __init__(self, every: float, share: float = 1.0) -> None:
        self.every = every
        self.share = share
        self._next = 0.0

    def is_due(self) -> bool:
        return time.monotonic() >= self._next

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Measure the work inside."""
        began = time.monotonic()
        try:
            yield
        finally:
            ended = time.monotonic()
            self._next = ended + max(self.every, (ended - began) * (1 / self.share - 1))


class Speed:
    """Steps per second over the last seconds, smoothed."""

    def __init__(self, step: int) -> None:
        self._step = step
        self._time = time.monotonic()
        self.steps_per_second = 0.0

    def update(self, step: int) -> float:
        now = time.monotonic()
        if step > self._step and now > self._time:
            measured = (step - self._step) / (now - self._time)
            former = self.steps_per_second or measured
            self.steps_per_second = 0.5 * former + 0.5 * measured
            self._step, self._time = step, now
        return self.steps_per_second


EARLY = (1, 2, 3, 5, 7, 15)


def is_snapshot_step(step: int) -> bool:
    """0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100 and so on: early steps change most."""
    while step >= 10 and step % 10 == 0:
        step //= 10
    return step in (0, *EARLY)


def snapshot_steps(last: int) -> set[int]:
    """Those of 1 to `last`, which is one as well."""
    steps = {step * 10**zeros for step in EARLY for zeros in range(len(str(last)))}
    return {step for step in steps if step < last} | {last}
