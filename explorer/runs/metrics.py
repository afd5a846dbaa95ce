"""The metrics of a run, one JSON line a step: appended by its worker, read while they grow."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from explorer.runs.spec import is_float32, is_step
from explorer.system.atomic_files import OWNER_ONLY, write_text


@dataclass(frozen=True)
class MetricsRow:
    """The metrics of one step; `value` is set where held-out data was measured too.

    `seconds` is how long the run had been trained; runs of earlier versions do not say it.
    """

    step: int
    loss: float | None = None
    lr: float | None = None
    grad_norm: float | None = None
    value: float | None = None
    seconds: float | None = None


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
                self._start_over_if_replaced(file.fileno())
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

    def _start_over_if_replaced(self, file: int) -> None:
        found = os.fstat(file)
        if found.st_ino != self.file_id or found.st_size < self._read:
            self.rows, self._read, self.file_id = [], 0, found.st_ino


def cut_after(path: Path, step: int) -> None:
    """Drop the rows after `step`: a resumed run writes them again."""
    try:
        lines = path.read_bytes()
    except OSError:
        return
    kept = [line for line in lines.splitlines(keepends=True) if _is_upto(line, step)]
    write_text(path, b"".join(kept).decode("utf-8"))


def _is_upto(line: bytes, step: int) -> bool:
    return line.endswith(b"\n") and any(row.step <= step for row in _rows(line))


def _rows(lines: bytes) -> Iterator[MetricsRow]:
    for line in lines.splitlines():
        try:
            values = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(values, dict) and is_step(values.get("step")):
            yield MetricsRow(
                values["step"],
                *(
                    _number(values.get(name))
                    for name in ("loss", "lr", "grad_norm", "value", "seconds")
                ),
            )


def _number(value: Any) -> float | None:
    """A number that a tensor can have had, or None: a chart has no place for anything else."""
    return float(value) if is_float32(value) else None
