"""The limits of one run while a worker trains it: its time, its memory, its bytes on disk.

Most are checked between two steps: the run ends as at the command stop, with its state. A step
that takes too long cannot be interrupted from outside, so its process ends, and the last saved
state remains. A step that needs too much memory fails.
"""

import contextlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from explorer.runs.quotas import bytes_of, disk_fault
from explorer.runs.run import Run
from explorer.system import limits, operating_system
from explorer.system.pace import Pace

NO_MEMORY = re.compile(r"(can't allocate|cannot allocate|not enough) memory|bad_alloc", re.I)
"""How torch says that there is no memory."""
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
        self._since = clock()
        self._sizing = Pace(every=0.5, share=0.005)

    def after_step(self, seconds: float, reserve: int) -> str:
        """The sentence of the limit that ends the run here; empty if it may go on.

        `seconds` is the training time of the run, `reserve` the bytes that its end will write.
        """
        with self._guard:
            self._since = self._clock()
        if not limits.RUN_SECONDS.allows(seconds):
            return limits.RUN_SECONDS.refusal()
        if self._sizing.is_due():
            with self._sizing.timed():
                size = bytes_of(self._run.folder)
            if not limits.RUN_BYTES.allows(size + reserve):
                return limits.RUN_BYTES.refusal()
            return disk_fault(self._run.folder, reserve) or ""
        return ""

    def seconds_left(self) -> float:
        """Seconds left for the current step."""
        return limits.STEP_SECONDS.most - (self._clock() - self._since)

    def __enter__(self) -> "Watchdog":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._guard:
            self._ended.set()

    def watch(self) -> None:
        """Wait until the training ends or a step takes too long; then end the process."""
        while not self._ended.wait(max(0.0, self.seconds_left())):
            with self._guard:
                if self.seconds_left() <= 0 and not self._ended.is_set():
                    with contextlib.suppress(OSError):
                        self._run.stop_for(limits.STEP_SECONDS.refusal())
                    end_process()
                    return


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
