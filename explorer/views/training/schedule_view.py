"""The learning rate over the steps: as the form plans it, and as the run on screen has had it."""

from explorer.charts.training_curves import SCHEDULE_HEIGHT, rate_table, schedule_chart
from explorer.components.chart import chart
from explorer.components.fragment import fragment
from explorer.runs.run import Run
from explorer.tasks import Task
from explorer.views.training.live_run import metrics_of, seconds_between
from explorer.views.training.run_words import status_of
from models.training import TrainConfig


def draw_schedule(task: Task, training: TrainConfig, run: Run | None) -> None:
    """Drawn again and again while the run trains, whose step is marked."""
    every = seconds_between(status_of(run)) if run is not None else None
    fragment(every=every)(_draw_now)(task, training, run)


def _draw_now(task: Task, training: TrainConfig, run: Run | None) -> None:
    rows = metrics_of(run).rows if run is not None else []
    been = [(row.step, row.lr) for row in rows if row.lr is not None]
    chart(
        schedule_chart(training, max((rate for _, rate in been), default=0.0)),
        table=rate_table(been),
        height=SCHEDULE_HEIGHT,
        key="schedule_curve",
        title=f"Learning rate of {task.name if run is None else run.title}",
    )
