"""Whether the machine is there: a small clockwork beside what is measured notices when not.

A host that gives the cores to others, a quota, a busy neighbour: none of them is
known by one number of the kernel, but all make the same small piece of work late.
"""

from __future__ import annotations

import subprocess
import sys
import time
from types import TracebackType

REST = 0.018
WORK = 20_000
"""Steps of counting, one or two milliseconds: a tenth of a core."""


def clockwork() -> None:
    """Rest and work by turns for ever; a line for each turn: when it ended, what it took."""
    while True:
        begun = time.monotonic()
        time.sleep(REST)
        for _ in range(WORK):
            pass
        now = time.monotonic()
        print(f"{now} {now - begun}", flush=True)


class Presence:
    """A context manager; `missing(begin, end)` is the share of that time that was withheld."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None
        self.turns: list[tuple[float, float]] = []

    def __enter__(self) -> Presence:
        command = [sys.executable, "-m", "tests.benchmarks.presence"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.communicate()

    def missing(self, begin: float, end: float) -> float:
        """Between 0 and 1, of the turns that ended between these times of `time.monotonic`."""
        self._listen(end)
        quickest = min(took for _, took in self.turns)
        within = [took for ended, took in self.turns if begin <= ended <= end]
        return 1 - len(within) * quickest / sum(within)

    def _listen(self, end: float) -> None:
        """Every line until one that was written after this time."""
        assert self.process is not None
        assert self.process.stdout is not None
        while not self.turns or self.turns[-1][0] < end:
            ended, took = self.process.stdout.readline().split()
            self.turns.append((float(ended), float(took)))


if __name__ == "__main__":
    clockwork()
