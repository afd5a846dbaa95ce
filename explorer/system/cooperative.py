"""Cooperative scheduling: a reader who waits can leave, and long work lets others go in between.

`cachetools.cached(cache, condition=CancellableCondition())` computes a value once, however many
threads ask for it at the same time. If the first thread fails, the next one tries.

Long work calls `step()` between two pieces: two layers of a pass, two heads of a metric. In the run
of a page it ends the run if its reader has left or it takes too long, and hands the turn to the
next run (`explorer.app.throttle`). Anywhere else it does nothing.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Condition, local
from typing import Protocol, TypeVar

CHECK_SECONDS = 0.1
"""Seconds between two checks whether a waiting reader is still there."""
Part = TypeVar("Part")
Report = Callable[[float], None]
"""Called with the share of the work that is done."""


class CancellableRun(Protocol):
    """A reader's run, as the work in its thread uses it."""

    def step(self) -> None:
        """Called between two pieces of work; raises if the run must end."""

    def check_cancelled(self) -> None:
        """Called while the run waits; raises if it must end."""

    def release_slot(self) -> None:
        """Give up the turn while the run waits for others."""

    def take_slot(self) -> None:
        """Wait for a turn, and go on."""


class BrokenOff(Exception):
    """The work must end here; the run then has this state."""

    def __init__(self, state: str) -> None:
        super().__init__(state)
        self.state = state


class Breakable:
    """The run of a worker: it breaks work off at the next step, once `ending` gives a state.

    What is computed up to there is thrown away.
    """

    def __init__(self, ending: Callable[[], str | None]) -> None:
        self._ending = ending

    def step(self) -> None:
        """BrokenOff if the work must end."""
        if state := self._ending():
            raise BrokenOff(state)

    check_cancelled = step

    def release_slot(self) -> None:
        """A worker has no turns to give up."""

    take_slot = release_slot


_here = local()


def current_run() -> CancellableRun | None:
    """The run that this thread works for, if any."""
    return getattr(_here, "run", None)


@contextmanager
def run_in_thread(run: CancellableRun) -> Iterator[None]:
    """Work of this thread inside is work for that run."""
    former = current_run()
    _here.run = run
    try:
        yield
    finally:
        _here.run = former


def step() -> None:
    """Between two pieces of long work: let another run go, or end an unwanted one."""
    if (run := current_run()) is not None:
        run.step()


def interruptible(parts: Iterable[Part]) -> Iterator[Part]:
    """The same parts, with a step before each."""
    for part in parts:
        step()
        yield part


@contextmanager
def offload() -> Iterator[Callable[[], None]]:
    """Give up the turn while another process works for this run.

    Call the function that it yields now and then: it ends the run of a reader who has left.
    """
    run = current_run()
    if run is not None:
        run.release_slot()
    yield _check_cancelled
    if run is not None:
        run.take_slot()


def _check_cancelled() -> None:
    """End a waiting run whose result nobody wants any more."""
    if (run := current_run()) is not None:
        run.check_cancelled()
    elif _cancel_check is not None:
        _cancel_check()


_cancel_check: Callable[[], None] | None = None  # outside the app nobody leaves


def set_cancel_check(cancel_check: Callable[[], None]) -> None:
    """Set how waiting work outside a run ends: the check is called in its thread and may raise."""
    global _cancel_check
    _cancel_check = cancel_check


class CancellableCondition(Condition):
    """A condition that keeps no turn while it waits, and stops waiting when the run ends."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait at most CHECK_SECONDS, so call it in a loop."""
        run = current_run()
        if run is not None:
            run.release_slot()
        is_notified = super().wait(
            CHECK_SECONDS if timeout is None else min(timeout, CHECK_SECONDS)
        )
        self.release()  # a run may need this lock to give back its turn
        try:
            if not is_notified:
                _check_cancelled()
            elif run is not None:
                run.take_slot()
        finally:
            self.acquire()
        return is_notified


class Budget:
    """Bytes that several threads use, each by `with budget.spend(size)`.

    The first user calls `free` for how many there are. While there are users, the budget counts
    itself, since `free` does not know of bytes that are promised but not yet allocated.
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
        remains: int | None = None,
        refuse: Callable[[int], Exception] | None = None,
        share: int = 100,
    ) -> Iterator[None]:
        """Wait until so many bytes are left, or until there are no other users.

        One user gets at most `share` percent of the bytes that are left. Afterwards `remains` bytes
        (None: all) stay in use. If `size` is too much even without other users, raise the error
        that `refuse` makes of how many bytes are available.
        """
        with self._changed:
            while self._spending and size > self._left * share // 100:
                self._changed.wait()
            if not self._spending:
                self._left = self._free()
                available = self._left * share // 100
                if refuse is not None and size > available:
                    raise refuse(available)
            self._spending += 1
            self._left -= size
        try:
            yield
        finally:
            with self._changed:
                self._spending -= 1
                self._left += 0 if remains is None else size - remains
                self._changed.notify_all()
