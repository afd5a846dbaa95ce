"""The metrics of a run, one JSON line for each step, appended by its worker; and the best value."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TextIO

from explorer.runs.spec import is_float32, is_step
from explorer.system.atomic_files import OWNER_ONLY, write_text
from models.file_text import parse_json


@dataclass(frozen=True)
class MetricsRow:
    """The metrics of one step and the training time in seconds up to there.

    `value` is set if held-out data was measured too.
    """

    step: int
    loss: float | None = None
    lr: float | None = None
    grad_norm: float | None = None
    value: float | None = None
    seconds: float | None = None


NUMBERS = tuple(field.name for field in fields(MetricsRow) if field.name != "step")


class MetricsWriter:
    """Appends rows; they are on disk after `flush`."""

    def __init__(self, path: Path) -> None:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, OWNER_ONLY)
        self._file: TextIO = os.fdopen(handle, "a", encoding="utf-8")

    def add(self, row: MetricsRow) -> None:
        values = {name: value for name, value in vars(row).items() if value is not None}
        self._file.write(json.dumps(values) + "\n")

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()


class Metrics:
    """The rows of a metrics file that is still growing.

    `update` reads only what was added since the last call, so following a long run costs
    the same every second. An incomplete last line is read later, a damaged one is skipped.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[MetricsRow] = []
        self.file_id = 0
        self._read = 0

    def update(self) -> "Metrics":
        try:
            with self.path.open("rb") as file:
                status = os.fstat(file.fileno())
                if status.st_ino != self.file_id or status.st_size < self._read:  # another file
                    self.rows, self._read, self.file_id = [], 0, status.st_ino
                file.seek(self._read)
                added = file.read()
        except OSError:
            return self
        whole = added[: added.rfind(b"\n") + 1]
        self._read += len(whole)
        self.rows.extend(_rows(whole))
        return self

    def losses(self) -> list[tuple[int, float]]:
        return [(row.step, row.loss) for row in self.rows if row.loss is not None]

    def values(self) -> list[tuple[int, float]]:
        return [(row.step, row.value) for row in self.rows if row.value is not None]


def cut_after(path: Path, step: int) -> None:
    """Drop the rows after `step`: a resumed run writes them again."""
    try:
        lines = path.read_bytes()
    except OSError:
        return
    whole = (line for line in lines.splitlines(keepends=True) if line.endswith(b"\n"))
    upto = [line for line in whole if any(row.step <= step for row in _rows(line))]
    write_text(path, b"".join(upto).decode("utf-8"))


def _rows(lines: bytes) -> Iterator[MetricsRow]:
    for line in lines.splitlines():
        try:
            values = parse_json(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(values, dict) and is_step(values.get("step")):
            # A chart cannot show anything but a number that float32 can hold.
            numbers = {name: values.get(name) for name in NUMBERS}
            valid = {name: float(value) for name, value in numbers.items() if is_float32(value)}
            yield MetricsRow(values["step"], **valid)


@dataclass(frozen=True)
class Best:
    """A held-out value and the first step that reached it."""

    value: float
    step: int


def higher_is_better(measure: str) -> bool:
    """Whether a larger value of this metric is better."""
    return "nats" not in measure


def best_value(folder: Path, measure: str) -> Best | None:
    """The best value so far; None before the first. Each call reads only the new rows."""
    return _BestSoFar(str(folder), higher_is_better(measure)).now()


@lru_cache(maxsize=1_000)
class _BestSoFar:
    """The best value of one run; it drops the rows that it has read."""

    def __init__(self, folder: str, is_higher_better: bool) -> None:
        self._metrics = Metrics(Path(folder) / "metrics.jsonl")
        self._sign = 1.0 if is_higher_better else -1.0
        self._best: Best | None = None
        self._file = 0
        self._guard = Lock()

    def now(self) -> Best | None:
        with self._guard:
            rows = self._metrics.update().rows
            if self._metrics.file_id != self._file:  # a resumed run has rewritten the file
                self._best, self._file = None, self._metrics.file_id
            best = self._best
            for step, value in self._metrics.values():
                if best is None or self._sign * value > self._sign * best.value:
                    best = Best(value, step)
            rows.clear()
            self._best = best
            return best
