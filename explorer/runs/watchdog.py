"""The limits of one run while a worker trains it: its time, its memory, what it writes.

Most are met between two steps: the run ends as at the command stop, with its state. A step
that takes too long cannot be interrupted from outside, so its process ends, and the state that
was saved last remains. A step that asks for too much memory gets none.
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
"""How torch says that it was given none."""
SENT = (
    limits.RUN_SECONDS,
    limits.STEP_SECONDS,
    limits.RUN_MEMORY,
    limits.RUN_BYTES,
    limits.DISK_LEFT,
)


def settings() -> dict[str, str]:
    """These limits as they are here, for the environment of a process that trains elsewhere."""
    return {f"{limits.PREFIX}{limit.name.upper()}": str(limit.most) for limit in SENT}


def end_process() -> None:
    """At once: whatever is computed here, no other way ends it."""
    os._exit(1)


class Watchdog:
    """Watches one run, from a thread of its own. A context manager around the training."""

    def __init__(self, run: Run, clock: Callable[[], float] = time.monotonic) -> None:
        self._run, self._clock = run, clock
        self._guard = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self.watch, daemon=True)
        self._since = clock()
        self._sizing = Pace(every=0.5, share=0.005)

    def after_step(self, seconds: float, reserve: int) -> str:
        """The sentence of the limit that ends the run here; empty where it may go on.

        `seconds` is how long the run has been trained, `reserve` what its end will write.
        """
        with self._guard:
            self._since = self._clock()
        if not limits.RUN_SECONDS.allows(seconds):
            return limits.RUN_SECONDS.refusal()
        if self._sizing.is_due():
            with self._sizing.timed():
                written = bytes_of(self._run.folder)
            if not limits.RUN_BYTES.allows(written + reserve):
                return limits.RUN_BYTES.refusal()
            return disk_fault(self._run.folder, reserve) or ""
        return ""

    def seconds_left(self) -> float:
        """Of the step that is computed now."""
        return limits.STEP_SECONDS.most - (self._clock() - self._since)

    def __enter__(self) -> "Watchdog":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._guard:
            self._ended.set()

    def watch(self) -> None:
        """Until the training ends, or a step takes too long."""
        while not self._ended.wait(max(0.0, self.seconds_left())):
            with self._guard:
                if self.seconds_left() <= 0 and not self._ended.is_set():
                    with contextlib.suppress(OSError):
                        self._run.stop_for(limits.STEP_SECONDS.refusal())
                    end_process()
                    return


@contextlib.contextmanager
def bounded_memory() -> Iterator[None]:
    """In here the process gets RUN_MEMORY more than it has, where the system can count it.

    A MemoryError, or an error of torch, says where that is not enough: `is_of_memory`.
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
    """Whether this error says that there was no memory."""
    return isinstance(error, MemoryError) or bool(NO_MEMORY.search(str(error)))
