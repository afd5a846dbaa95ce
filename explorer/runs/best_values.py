"""The best held-out value of a run: of each line of its metrics, which are read once.

A metric in nats is a loss, so less is better; every other one is a share.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock

from explorer.runs.metrics import Metrics, MetricsRow

MOST_KEPT = 1_000


@dataclass(frozen=True)
class Best:
    """A held-out value, and the first step at which it was reached."""

    value: float
    step: int


def higher_is_better(measure: str) -> bool:
    """Whether a larger value of the metric of this name is the better one."""
    return "nats" not in measure


def best_value(folder: Path, measure: str) -> Best | None:
    """The best value so far; None before any was measured. Only what is new is read."""
    return _best_of(str(folder), higher_is_better(measure)).now()


class _BestSoFar:
    """Of one run; its rows are forgotten once they were read."""

    def __init__(self, folder: str, is_higher_better: bool) -> None:
        self._metrics = Metrics(Path(folder) / "metrics.jsonl")
        self._sign = 1.0 if is_higher_better else -1.0
        self._best: Best | None = None
        self._file = 0
        self._guard = Lock()

    def now(self) -> Best | None:
        with self._guard:
            self._metrics.update()
            if self._metrics.file_id != self._file:  # a resumed run has written it anew
                self._best, self._file = None, self._metrics.file_id
            self._best = self._better(self._metrics.rows)
            self._metrics.rows.clear()
            return self._best

    def _better(self, rows: Iterable[MetricsRow]) -> Best | None:
        best = self._best
        for row in rows:
            if row.value is None:
                continue
            if best is None or self._sign * row.value > self._sign * best.value:
                best = Best(row.value, row.step)
        return best


@lru_cache(maxsize=MOST_KEPT)
def _best_of(folder: str, is_higher_better: bool) -> _BestSoFar:
    return _BestSoFar(folder, is_higher_better)
