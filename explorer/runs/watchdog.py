"""The limits of one run while a worker trains it: its time, its memory, its bytes on disk.

Most are checked between two steps: the run ends as at the command stop, with its state. A step
that takes too long, or does not end after the command stop, cannot be interrupted from outside, so
its process ends, and the last saved state remains. A step that needs too much memory fails.
"""

import contextlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from explorer.runs.quotas import disk_fault
from explorer.runs.run import Run
from explorer.system import limits, operating_system
from explorer.system.atomic_files import bytes_of
from explorer.system.pace import Pace

NO_MEMORY = re.compile(r"(can't allocate|cannot allocate|not enough) memory|bad_alloc", re.I)
"""How torch says that there is no memory."""
STEP, MEASURING = "one step", "measuring held-out rows or saving the model"
MAKING = "making the data and the model"
LOOK_SECONDS = 0.5
"""Seconds between two looks, at most."""
SECONDS_TO_STOP = 2.0
"""Of processor time, for the layer that is being computed."""
RUN_LIMITS = (
    limits.RUN_SECONDS,
    limits.STEP_SECONDS,
    limits.RUN_MEMORY,
    limits.RUN_BYTES,
    limits.DISK_LEFT,
)


def settings() -> dict[str, str]:
    """The limits of a run on this server, as environment variables for a worker elsewhere."""
    return {f"{limits.PREFIX}{limit.name.upper()}": str(limit.most) for limit in RUN_LIMITS}


def end_process() -> None:
    """End this process at once: nothing else ends a computation in torch."""
    os._exit(1)


class Watchdog:
    """Watches one run from a thread of its own. A context manager around the training."""

    def __init__(self, run: Run, clock: Callable[[], float] = time.monotonic) -> None:
        self._run, self._clock = run, clock
        self._guard = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self.watch, daemon=True)
        self._doing, self._since = MAKING, clock()
        self._asked_at: float | None = None
        self._sizing = Pace(every=0.5, share=0.005)

    def after_step(self, seconds: float, reserve: int) -> str:
        """The sentence of the limit that ends the run here; empty if it may go on.

        `seconds` is the training time of the run, `reserve` the bytes that its end will write.
        """
        if not limits.RUN_SECONDS.allows(seconds):
            return limits.RUN_SECONDS.refusal()
        if self._sizing.is_due():
            with self._sizing.timed():
                size = bytes_of(self._run.folder)
            if not limits.RUN_BYTES.allows(size + reserve):
                return limits.RUN_BYTES.refusal()
            return disk_fault(self._run.folder, reserve) or ""
        return ""

    def begin(self, what: str) -> None:
        """What the run does from now on: STEP, MEASURING or MAKING."""
        with self._guard:
            self._doing, self._since, self._asked_at = what, self._clock(), None

    def seconds_left(self) -> float:
        """Seconds left for what the run does now; only a step has the limit of a step."""
        return self._most - (self._clock() - self._since)

    @property
    def _most(self) -> int:
        step = limits.STEP_SECONDS.most
        return step if self._doing == STEP else max(step, limits.RUN_SECONDS.most)

    def _why_end(self) -> str:
        """Why the process must end now; empty if it may go on."""
        if self.seconds_left() <= 0:
            if self._doing == STEP:
                return limits.STEP_SECONDS.refusal()
            return (
                f"The run was stopped because {self._doing} took more than "
                f"{limits.STEP_SECONDS.in_words(self._most)}. Make the model or its data smaller."
            )
        if self._doing == STEP and self._run.last_command() == "stop":
            self._asked_at = self._asked_at or time.process_time()
            if time.process_time() - self._asked_at > SECONDS_TO_STOP:
                return "The run was stopped within a step. Its last saved state is kept."
        return ""

    def __enter__(self) -> "Watchdog":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._guard:
            self._ended.set()

    def watch(self) -> None:
        """Wait until the training ends or must be ended; then end the process."""
        while not self._ended.wait(max(0.0, min(LOOK_SECONDS, self.seconds_left()))):
            self.look()

    def look(self) -> None:
        """End the process if the training must be ended."""
        with self._guard:
            if (why := self._why_end()) and not self._ended.is_set():
                self._ended.set()
                with contextlib.suppress(OSError):
                    self._run.stop_for(why)
                end_process()


@contextlib.contextmanager
def bounded_memory() -> Iterator[None]:
    """Within it, the process can get RUN_MEMORY more than it has, if the system can count that.

    If that is not enough, MemoryError or an error of torch is raised: see `is_of_memory`.
    """
    had, _ = operating_system.limits("DATA")
    with contextlib.suppress(OSError, ValueError, IndexError):
        has = 1024 * int(Path("/proc/self/status").read_text().split("VmData:")[1].split()[0])
        operating_system.limit(DATA=has + limits.RUN_MEMORY.most)
    try:
        yield
    finally:
        with contextlib.suppress(OSError, ValueError):
            operating_system.limit(DATA=had)


def is_of_memory(error: BaseException) -> bool:
    """Whether this error says that the memory was not enough."""
    return isinstance(error, MemoryError) or bool(NO_MEMORY.search(str(error)))
