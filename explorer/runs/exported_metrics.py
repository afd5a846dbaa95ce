"""The metrics of a run for other tools: a CSV table, or TensorBoard's event files."""

import csv
import dataclasses
import io
import shutil
from pathlib import Path
from typing import Self

from explorer.runs.metrics import Metrics, MetricsRow
from explorer.runs.run import Run
from explorer.system.atomic_files import write_text
from explorer.system.pace import Pace

CSV, EVENTS = "metrics.csv", "tensorboard"
COLUMNS = tuple(field.name for field in dataclasses.fields(MetricsRow))
TAGS = {
    "loss": "loss",
    "lr": "learning_rate",
    "grad_norm": "gradient_norm",
    "value": "held_out/{measure}",
}
"""Their names in TensorBoard, without spaces, which it would replace."""


def write_csv(run: Run) -> Path:
    """Write `metrics.csv` in the folder of the run: a row for each step, unknown cells empty."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    table.writerows(dataclasses.astuple(row) for row in run.metrics().rows)
    write_text(run.folder / CSV, text.getvalue())
    return run.folder / CSV


class EventFiles:
    """Event files in the folder `tensorboard` of a run, which replace the old ones.

    A context manager: `update` writes the new rows, and the end the rest, so that TensorBoard can
    follow a run that trains. Each value has the time of its step, if the run recorded it.
    """

    def __init__(self, run: Run) -> None:
        from tensorboardX import SummaryWriter  # a slow import, only for who needs it

        self._run = run
        self._metrics = Metrics(run.folder / "metrics.jsonl")  # a resume has cut the file before
        self._written = 0
        self._began = (run.folder / "spec.json").stat().st_mtime
        self._pace = Pace(every=1.0, share=0.02)
        shutil.rmtree(run.folder / EVENTS, ignore_errors=True)
        self._writer = SummaryWriter(str(run.folder / EVENTS), flush_secs=1)

    def update(self) -> None:
        """Write the finished steps, about once a second."""
        if self._pace.is_due():
            with self._pace.timed():
                self._write()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._write()
        self._writer.close()

    def _write(self) -> None:
        rows = self._metrics.update().rows
        measure = (self._run.status_or_new().measure or "metric").replace(" ", "_")
        for row in rows[self._written :]:
            time = self._began + (row.seconds or 0.0)
            for name, tag in TAGS.items():
                if (value := getattr(row, name)) is not None:
                    tag = tag.format(measure=measure)
                    self._writer.add_scalar(tag, value, row.step, walltime=time)
        self._written = len(rows)
