"""Two small trainings side by side, a wrong and a right one, that may be stopped at any step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.tasks import TASKS, Task
from explorer.views.museum.mistakes import MISTAKES
from models import Transformer
from models.presets import web_tutorial_classifier
from models.training import Batch, TrainConfig, train
from models.transformer import evaluating

STEPS = 60
BATCH, LENGTH, VOCABULARY = 16, 20, 5000
HELD_OUT = 256
EVERY = 4
"""Accuracy is measured every so many steps."""
CURVES = ("noise, on the batch just learned", "noise, held out", "real labels, held out")


@dataclass(frozen=True)
class Point:
    """One measured value of one curve."""

    step: int
    curve: str
    value: float


def softmax_twice(task: Task, steps: int = STEPS) -> Iterator[Point]:
    """The loss of the same fresh model with a softmax inside, and with logits."""
    how = task.training.replace(steps=steps, batch_size=32, warmup=min(20, task.training.warmup))
    inside = MISTAKES["softmax-twice"].make(Transformer(task.model))
    runs = {"softmax twice": inside, "logits": Transformer(task.model)}
    reports = [train(model, lambda step: task.batch(step, how), how) for model in runs.values()]
    for both in zip(*reports, strict=True):
        for name, report in zip(runs, both, strict=True):
            yield Point(report.step, name, report.loss)


def random_labels(steps: int = STEPS) -> Iterator[Point]:
    """The web tutorial's classifier on its random labels; a small one on real ones.

    On noise there is one batch of 16 × 20 tokens, as in the document. Accuracy is measured on
    that batch, as there but with dropout off, and on 256 texts that training never saw.
    """
    how = TrainConfig(steps=steps, batch_size=BATCH, lr=1e-3, warmup=0, optimizer="adam", clip=0.0)
    task = TASKS["negation"]
    real = task.training.replace(steps=steps, warmup=10)
    noise, never_seen = noise_of(0, BATCH), noise_of(1, HELD_OUT)
    models = Transformer(web_tutorial_classifier()), Transformer(task.model)
    batches = (lambda step: noise), (lambda step: task.batch(step, real))
    learnt = [
        train(model, batch_at, config)
        for model, batch_at, config in zip(models, batches, (how, real), strict=True)
    ]
    for wrong, right in zip(*learnt, strict=True):
        if wrong.step % EVERY and wrong.step != 1:
            continue
        yield Point(wrong.step, CURVES[0], accuracy(models[0], noise))
        yield Point(wrong.step, CURVES[1], accuracy(models[0], never_seen))
        yield Point(right.step, CURVES[2], task.measure(models[1]).value)


def noise_of(seed: int, rows: int) -> Batch:
    """Random tokens with random labels, as in the web tutorial."""
    drawn = torch.Generator().manual_seed(seed)
    ids = torch.randint(VOCABULARY, (rows, LENGTH), generator=drawn)
    return Batch((ids,), torch.randint(2, (rows,), generator=drawn))


def accuracy(model: Transformer, batch: Batch) -> float:
    """The share of right answers, without dropout."""
    with evaluating(model):
        best: Tensor = model(*batch.inputs).argmax(-1)
    return float((best == batch.labels).float().mean())
