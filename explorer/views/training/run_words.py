"""How a run is put into words."""

from __future__ import annotations

from explorer.runs.run import Run, RunError
from explorer.runs.spec import (
    DONE,
    FAILED,
    INTERRUPTED,
    PAUSED,
    STOPPED,
    TRAINING,
    WAITING,
    RunSpec,
    Status,
)
from explorer.tasks import TASKS
from explorer.views.training.run_status import status_of

SAID = {
    WAITING: "waiting for a free worker",
    TRAINING: "training",
    PAUSED: "paused",
    STOPPED: "stopped",
    DONE: "done",
    FAILED: "failed",
    INTERRUPTED: "interrupted: its process ended, what it reached is kept",
}


def progress(status: Status) -> str:
    """Where the run stands, how fast it goes, how long it will take."""
    parts = [f"Step {status.step:,} of {status.steps:,}"]
    if status.state == TRAINING and status.steps_per_second > 0:
        parts.append(f"{status.steps_per_second:.3g} steps/s")
    left = status.seconds_left
    if left is not None:
        parts.append(f"{duration(left)} left")
    elif status.seconds:
        parts.append(f"{duration(status.seconds)} of training")
    if status.value is not None:
        at = "" if status.measured_at is None else f" at step {status.measured_at:,}"
        parts.append(f"{status.measure} {status.value:.3g} on held-out data{at}")
    return " · ".join(parts)


def duration(seconds: float) -> str:
    """About how long, in the unit a person would use."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def row(run: Run) -> dict[str, object]:
    """A run in the list of runs: how it stands, what it reached, what is special about it."""
    try:
        spec, status = run.spec, status_of(run)
    except RunError:
        return {"run": run.name, "state": "cannot be read"}
    return {
        "run": run.name,
        "state": status.state,
        "step": status.step,
        "held out": status.value,
        "of": status.measure,
        "what differs": differs(spec),
    }


def differs(spec: RunSpec) -> str:
    """What was set otherwise than the task has it."""
    task = TASKS.get(spec.task)
    if task is None:
        return ""
    changed = [
        f"{name} {was} → {now}"
        for usual, asked in ((task.model, spec.model), (task.training, spec.training))
        for (name, was), now in zip(usual.to_dict().items(), asked.to_dict().values(), strict=True)
        if was != now
    ]
    if spec.weights_seed:
        changed.append(f"weights seed {spec.weights_seed}")
    return ", ".join(changed) or "the task's own settings"
