"""What long work owes to readers: who waits may leave, who works lets others in between.

`cachetools.cached(cache, condition=CancellableCondition())` makes a thing once however many threads
ask for it at once. If its maker fails, the next one tries.

`step()` stands between two pieces of whatever may take long: two layers of a pass, two heads of
a metric. In the run of a page it ends the run whose reader has gone or who has had enough, and
hands the turn to the next (`explorer.app.throttle`); anywhere else nothing happens.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Condition, local
from typing import Protocol, TypeVar

CHECK_SECONDS = 0.1
"""Seconds of waiting after which it is asked again whether there is still a reader."""
Part = TypeVar("Part")


class CancellableRun(Protocol):
    """A reader's run, as the work in its thread sees it."""

    def step(self) -> None:
        """Between two pieces of work: raises where the run must not go on."""

    def check_cancelled(self) -> None:
        """While it waits: the same."""

    def release_slot(self) -> None:
        """It waits for others now and needs no turn."""

    def take_slot(self) -> None:
        """It goes on, when its turn comes."""


_here = local()


def current_run() -> CancellableRun | None:
    """The run that this thread works for, if any."""
    return getattr(_here, "run", None)


@contextmanager
def run_in_thread(run: CancellableRun) -> Iterator[None]:
    """What this thread does meanwhile is work for that run."""
    _here.run = run
    try:
        yield
    finally:
        del _here.run


def step() -> None:
    """Called between two pieces of long work: the others' turn, or the end of an unwanted run."""
    if (run := current_run()) is not None:
        run.step()


def interruptible(parts: Iterable[Part]) -> Iterator[Part]:
    """The same parts, with a step before each."""
    for part in parts:
        step()
        yield part


@contextmanager
def offload() -> Iterator[Callable[[], None]]:
    """Another process works for this run meanwhile, which needs no turn.

    It gives what is called now and then, and ends the run of a reader who has gone.
    """
    run = current_run()
    if run is not None:
        run.release_slot()
    yield _check_cancelled
    if run is not None:
        run.take_slot()


def _check_cancelled() -> None:
    """End a run that waits for what nobody wants any more."""
    if (run := current_run()) is not None:
        run.check_cancelled()
    else:
        _cancel_check()


def _never_cancelled() -> None:
    """Outside of the app nobody leaves."""


_cancel_check: Callable[[], None] = _never_cancelled


def set_cancel_check(cancel_check: Callable[[], None]) -> None:
    """How, from now on, the run ends of a reader who has gone or wants something else.

    It is called in the thread that waits and raises where it must not go on.
    """
    global _cancel_check
    _cancel_check = cancel_check


class CancellableCondition(Condition):
    """One whose waiting ends with the run of the reader who waits, and takes nobody's turn."""

    def wait(self, timeout: float | None = None) -> bool:
        """For a while that is never longer than CHECK_SECONDS, so wait in a loop."""
        run = current_run()
        if run is not None:
            run.release_slot()
        is_notified = super().wait(
            CHECK_SECONDS if timeout is None else min(timeout, CHECK_SECONDS)
        )
        self.release()  # whoever has a turn may need this very lock to give it back
        try:
            if not is_notified:
                _check_cancelled()
            elif run is not None:
                run.take_slot()
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
        self._changed = CancellableCondition()
        self._spending = 0
        self._left = 0

    @contextmanager
    def spend(
        self,
        size: int,
        kept: int | None = None,
        refuse: Callable[[int], Exception] | None = None,
        share: int = 100,
    ) -> Iterator[None]:
        """Wait until so many are left, or until nobody takes any: then it may be too much.

        At most `share` percent of those that are left are given away at once. Afterwards `kept`
        of them (None: all) stay taken. Raises what `refuse` makes of how many it could have,
        where they are too many even then.
        """
        with self._changed:
            while self._spending and size > self._left * share // 100:
                self._changed.wait()
            if not self._spending:
                self._left = self._free()
                given = self._left * share // 100
                if refuse is not None and size > given:
                    raise refuse(given)
            self._spending += 1
            self._left -= size
        try:
            yield
        finally:
            with self._changed:
                self._spending -= 1
                self._left += 0 if kept is None else size - kept
                self._changed.notify_all()
