"""Two small trainings in step, a wrong and a right one, which can be stopped at any step."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from explorer.tasks import TASKS, Task
from explorer.tasks.task_metrics import accuracy
from explorer.views.museum.mistakes import MISTAKES
from models import Transformer
from models.presets import WEB_TUTORIAL_CLASSIFIER
from models.training import Batch, TrainConfig, train

PAIRED_STEPS = 60
BATCH, LENGTH, VOCABULARY = 16, 20, 5000
HELD_OUT = 256
MEASURED_EVERY = 4
"""Accuracy is measured every so many steps."""
CURVES = ("random labels, training batch", "random labels, held out", "real labels, held out")


@dataclass(frozen=True)
class TrainingPoint:
    """One measured value of one curve."""

    step: int
    curve: str
    value: float


def train_softmax_twice(task: Task, steps: int = PAIRED_STEPS) -> Iterator[TrainingPoint]:
    """The loss of the same untrained model with a softmax inside, and with logits."""
    how = task.training.replace(steps=steps, batch_size=32, warmup=min(20, task.training.warmup))
    inside = MISTAKES["softmax-twice"].make(Transformer(task.model))
    runs = {"softmax twice": inside, "logits": Transformer(task.model)}
    reports = [train(model, lambda step: task.batch(step, how), how) for model in runs.values()]
    for both in zip(*reports, strict=True):
        for name, report in zip(runs, both, strict=True):
            yield TrainingPoint(report.step, name, report.loss)


def train_on_random_labels(steps: int = PAIRED_STEPS) -> Iterator[TrainingPoint]:
    """The web tutorial's classifier on its random labels; a small one on real ones.

    The random labels are for one batch of 16 × 20 tokens, as in the document. Accuracy is
    measured on that batch, but with dropout off, and on 256 texts that were not trained on.
    """
    how = TrainConfig(steps=steps, batch_size=BATCH, lr=1e-3, warmup=0, optimizer="adam", clip=0.0)
    task = TASKS["negation"]
    real = task.training.replace(steps=steps, warmup=10)
    learned, held_out = random_batch(0, BATCH), random_batch(1, HELD_OUT)
    models = Transformer(WEB_TUTORIAL_CLASSIFIER), Transformer(task.model)
    batches = (lambda step: learned), (lambda step: task.batch(step, real))
    trainings = [
        train(model, batch_at, config)
        for model, batch_at, config in zip(models, batches, (how, real), strict=True)
    ]
    for wrong, right in zip(*trainings, strict=True):
        if wrong.step % MEASURED_EVERY and wrong.step != 1:
            continue
        yield TrainingPoint(wrong.step, CURVES[0], accuracy(models[0], learned))
        yield TrainingPoint(wrong.step, CURVES[1], accuracy(models[0], held_out))
        yield TrainingPoint(right.step, CURVES[2], task.measure(models[1]).value)


def random_batch(seed: int, rows: int) -> Batch:
    """Random tokens with random labels, as in the web tutorial."""
    drawn = torch.Generator().manual_seed(seed)
    ids = torch.randint(VOCABULARY, (rows, LENGTH), generator=drawn)
    return Batch((ids,), torch.randint(2, (rows,), generator=drawn))
