"""Updates until a task's held-out metric is what its row says, for three seeds.

The rows are what was once measured with one seed (steps and value); a task may take three times
as many. `python -m tests.benchmarks tasks` takes some minutes of one core.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from explorer.tasks import TASKS, Task
from models import Transformer
from models.training import train
from tests.benchmarks.measuring import Row

SEEDS = (0, 1, 2)
TIMES = 3


@dataclass(frozen=True)
class Known:
    """What was reached, in how many updates, and how often it is measured here."""

    steps: int
    value: float
    every: int = 25


ROWS = {
    "reverse-encoder": Known(150, 0.999),
    "copy": Known(100, 0.995),
    "reverse": Known(200, 1.0),
    "sort": Known(900, 1.0, 50),
    "induction": Known(200, 0.997),
    "induction-fixed": Known(200, 0.997),
    "negation": Known(1_450, 1.0),
    "brackets": Known(800, 1.0, 50),
    "translation": Known(75, 1.0, 15),
    "dates": Known(300, 0.98),
    "addition": Known(2_800, 0.98, 100),
}
"""`induction-control` and `addition-leak` are there to fail, so they reach nothing."""


def steps_needed() -> Iterator[Row]:
    for name, known in ROWS.items():
        for seed in SEEDS:
            yield _row(TASKS[name], known, seed)


def _row(task: Task, known: Known, seed: int) -> Row:
    most = TIMES * known.steps
    step, value = _reached(task, known, seed, most)
    met = value >= known.value
    said = f"{value:.3f} after {step:,} updates"
    return Row(
        f"{task.name} held out, seed {seed}",
        said,
        f"{known.value:g} after {known.steps:,}",
        step / known.steps if met else None,
        f"≤ {TIMES} ×",
        met,
    )


def _reached(task: Task, known: Known, seed: int, most: int) -> tuple[int, float]:
    """Where the value was first reached with the task's own settings; else the best of all."""
    training = task.training.replace(seed=seed)
    model, best = Transformer(task.model, seed=seed), (0, 0.0)
    for report in train(model, lambda step: task.batch(step, training), training):
        if report.step > most:
            break
        if report.step % known.every and report.step != training.steps:
            continue
        value = task.measure(model).value
        model.train()
        if value > best[1]:
            best = (report.step, value)
        if value >= known.value:
            break
    return best
