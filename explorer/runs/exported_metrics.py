"""The metrics of a run as other tools read them: a CSV table, or TensorBoard's event files."""

from __future__ import annotations

import csv
import dataclasses
import io
import shutil
from pathlib import Path

from explorer.runs.metrics import MetricsRow
from explorer.runs.run import Run
from explorer.runs.run_files import write_text

CSV, EVENTS = "metrics.csv", "tensorboard"
COLUMNS = tuple(field.name for field in dataclasses.fields(MetricsRow))
TAGS = {
    "loss": "loss",
    "lr": "learning_rate",
    "grad_norm": "gradient_norm",
    "value": "held_out/{measure}",
}
"""What TensorBoard calls them, without spaces, which it would replace."""


def write_csv(run: Run) -> Path:
    """`metrics.csv` in the folder of the run: a row for each step, empty where nothing is known."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    table.writerows(dataclasses.astuple(row) for row in run.metrics().rows)
    write_text(run.folder / CSV, text.getvalue())
    return run.folder / CSV


def write_events(run: Run) -> Path:
    """Event files in the folder `tensorboard` of the run, in place of those that were there.

    Each value has the time at which its step was made, as far as the run says it.
    """
    from tensorboardX import SummaryWriter  # only who asks for it waits for its import

    folder = run.folder / EVENTS
    shutil.rmtree(folder, ignore_errors=True)
    began = (run.folder / "spec.json").stat().st_mtime
    measure = (run.status_or_new().measure or "metric").replace(" ", "_")
    with SummaryWriter(str(folder)) as writer:
        for row in run.metrics().rows:
            for name, tag in TAGS.items():
                if (value := getattr(row, name)) is not None:
                    time = began + (row.seconds or 0.0)
                    writer.add_scalar(tag.format(measure=measure), value, row.step, walltime=time)
    return folder
