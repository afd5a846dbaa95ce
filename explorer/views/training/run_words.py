"""Words about a run for every page: its state, its progress, a duration, and its errors."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from explorer.app.messages import keep_note
from explorer.app.reader_runs import is_own
from explorer.app.session import state_of
from explorer.catalog import in_a_sentence
from explorer.catalog.model_descriptions import ANY_EXAMPLE
from explorer.runs.metrics import Metrics
from explorer.runs.run import Run
from explorer.runs.spec import (
    DONE,
    FAILED,
    INTERRUPTED,
    PAUSED,
    STOPPED,
    TRAINING,
    WAITING,
    RunError,
    Status,
)
from explorer.tasks import Task
from explorer.text import TextError
from explorer.text.number_format import three

MOST_METRICS = 256
STATE_WORDS = {
    WAITING: "waiting for its turn",
    TRAINING: "training",
    PAUSED: "paused",
    STOPPED: "stopped",
    DONE: "done",
    FAILED: "failed",
    INTERRUPTED: "interrupted: its process ended, and its last state is kept",
}


class RunMetrics(dict[Path, Metrics]):
    """The metrics of the runs that were drawn last, by folder."""


def metrics_of(run: Run) -> Metrics:
    """The metrics of the run, cached for the session, so that only new rows are read."""
    by_folder = state_of(RunMetrics)
    by_folder[run.folder] = metrics = by_folder.pop(run.folder, None) or run.metrics()
    if len(by_folder) > MOST_METRICS:
        del by_folder[next(iter(by_folder))]
    return metrics.update()


def visible_task(run: Run) -> Task:
    """The task of the run, without examples of a text that belongs to another reader."""
    return replace(run.task(), examples=(ANY_EXAMPLE,)) if hides_text(run) else run.task()


def hides_text(run: Run) -> bool:
    """Whether it is trained on a text of another reader."""
    return run.is_private and not is_own(run)


def progress_words(status: Status) -> str:
    """The step, the speed, the time left, and the newest held-out metric."""
    parts = [f"Step {status.step:,} of {status.steps:,}"]
    if status.state == TRAINING and status.steps_per_second > 0:
        parts.append(f"{three(status.steps_per_second)} steps/s")
    left = status.seconds_left
    if left is not None:
        parts.append(f"{duration(left)} left")
    elif status.seconds:
        parts.append(f"{duration(status.seconds)} of training")
    if status.value is not None:
        at = "" if status.measured_at is None else f" at step {status.measured_at:,}"
        parts.append(f"{status.measure} {three(status.value)} on {status.held_out}{at}")
    return " · ".join(parts)


def duration(seconds: float) -> str:
    """A duration in seconds, minutes or hours."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def first_words(names: Sequence[str], most: int, between: str = ", ", last: str = " and ") -> str:
    """The first of these names, and how many more there are."""
    more = f"{last}{len(names) - most} more" if len(names) > most else ""
    return f"{between.join(names[:most])}{more}"


@contextmanager
def errors_noted(key: str) -> Iterator[None]:
    """In a callback: keep an error as a note, which the page draws with the notes of this key."""
    try:
        yield
    except (RunError, TextError, OSError) as error:
        keep_note(key, in_a_sentence(error))
