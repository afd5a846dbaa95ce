"""Two small trainings side by side, a wrong and a right one, which the reader can stop."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import streamlit as st
import torch

from explorer.app.progress import bar
from explorer.app.session import redraw, state_of
from explorer.charts.figure_data import WINDOW
from explorer.charts.training_curves import CURVES_HEIGHT, held_out_curves, loss_curves
from explorer.components.chart import Table, chart
from explorer.tasks import TASKS, Task
from explorer.tasks.task_metrics import accuracy, value_of
from explorer.text.number_format import three
from explorer.views.museum.mistakes import MISTAKES
from models import Transformer
from models.config import TrainConfig
from models.presets import WEB_TUTORIAL_CLASSIFIER
from models.training import Batch, train

PAIRED_STEPS = 60
BATCH, LENGTH, VOCABULARY = 16, 20, 5000
HELD_OUT = 256
MEASURED_EVERY = 4
"""Steps between two measurements of the accuracy."""
CURVES = ("random labels, training batch", "random labels, held out", "real labels, held out")
RANDOM_LABELS = "random_labels"


@dataclass(frozen=True)
class TrainingPoint:
    """One measured value of one curve."""

    step: int
    curve: str
    value: float


class PairedTrainings(dict[str, list[TrainingPoint]]):
    """The points of the trainings that the reader started, by their names."""


def train_softmax_twice(task: Task, steps: int = PAIRED_STEPS) -> Iterator[TrainingPoint]:
    """Train the same untrained model with a softmax inside, and with logits."""
    config = task.training.replace(steps=steps, batch_size=32, warmup=min(20, task.training.warmup))
    inside = MISTAKES["softmax-twice"].make(Transformer(task.model))
    runs = {"softmax twice": inside, "logits": Transformer(task.model)}
    reports = [
        train(model, lambda step: task.batch(step, config), config) for model in runs.values()
    ]
    for both in zip(*reports, strict=True):
        for name, report in zip(runs, both, strict=True):
            yield TrainingPoint(report.step, name, report.loss)


def train_on_random_labels(steps: int = PAIRED_STEPS) -> Iterator[TrainingPoint]:
    """Train the web tutorial's classifier on random labels, and a small one on real labels.

    The random labels are for one batch of 16 × 20 tokens, as in the document. Accuracy is
    measured without dropout, on that batch and on 256 texts that were not trained on.
    """
    how = TrainConfig(steps=steps, batch_size=BATCH, lr=1e-3, warmup=0, optimizer="adam", clip=0.0)
    task = TASKS["negation"]
    real = task.training.replace(steps=steps, warmup=10)
    train_batch, held_out = random_batch(0, BATCH), random_batch(1, HELD_OUT)
    models = Transformer(WEB_TUTORIAL_CLASSIFIER), Transformer(task.model)
    batches = (lambda step: train_batch), (lambda step: task.batch(step, real))
    trainings = [
        train(model, batch_at, config)
        for model, batch_at, config in zip(models, batches, (how, real), strict=True)
    ]
    for wrong, right in zip(*trainings, strict=True):
        if wrong.step % MEASURED_EVERY and wrong.step != 1:
            continue
        yield TrainingPoint(wrong.step, CURVES[0], value_of(accuracy, models[0], train_batch))
        yield TrainingPoint(wrong.step, CURVES[1], value_of(accuracy, models[0], held_out))
        yield TrainingPoint(right.step, CURVES[2], task.measure(models[1]).value)


def random_batch(seed: int, rows: int) -> Batch:
    """Random tokens with random labels, as in the web tutorial."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(VOCABULARY, (rows, LENGTH), generator=generator)
    return Batch((ids,), torch.randint(2, (rows,), generator=generator))


def lowest_loss(options: int) -> float:
    """The least cross-entropy, in nats, if a softmax over `options` is read as logits.

    It is log(e + options − 1) − 1, with all probability on the right one; logits could reach 0.
    """
    return math.log(math.e + options - 1) - 1


def draw_softmax_trainings(task: Task) -> None:
    outputs = len(task.classes) if task.model.head == "classifier" else task.model.vocab_size
    st.markdown("**Two training runs from the same weights**")
    st.text(
        f"Task {task.name}, {PAIRED_STEPS} steps of 32. With the softmax inside, "
        f"the loss cannot fall below {three(lowest_loss(outputs))}."
    )
    points = _draw_training(f"softmax_{task.name}", lambda: train_softmax_twice(task, PAIRED_STEPS))
    if points:
        curves = loss_curves(PAIRED_STEPS, max(point.value for point in points), run="run")
        _draw_curves(points, "loss", "loss", curves, CURVES_HEIGHT)


def draw_random_label_trainings() -> None:
    st.markdown("**Training on random labels, and on a task**")
    st.text(
        f"The web tutorial's classifier, 389,218 parameters, on 16 × 20 random tokens, "
        f"{PAIRED_STEPS} steps, and the small classifier of the task negation. The document "
        "measures with dropout on; here it is off."
    )
    points = _draw_training(RANDOM_LABELS, lambda: train_on_random_labels(PAIRED_STEPS))
    if points:
        curves = held_out_curves("accuracy", PAIRED_STEPS, run="run")
        _draw_curves(points, "value", "accuracy", curves, WINDOW)


def random_label_accuracies() -> str:
    """The last accuracies on the training batch and on other texts, in a sentence."""
    points = state_of(PairedTrainings).get(RANDOM_LABELS, [])
    last = {point.curve: three(point.value) for point in points}
    if len(last) < len(CURVES):
        return "two accuracies. Train both, below, to see them."
    learned, unseen, _ = (last[curve] for curve in CURVES)
    return (
        f"an accuracy of {learned} on the training batch, of {unseen} on texts that were not "
        "trained on."
    )


def _draw_training(name: str, begin: Callable[[], Iterator[TrainingPoint]]) -> list[TrainingPoint]:
    """Draw a button that trains, then one that stops; return the points so far."""
    trainings = state_of(PairedTrainings)
    former_points = trainings.get(name, [])
    if not former_points:
        st.text(
            "Both training runs are short and tied to this page: leaving or reloading it ends "
            "them. Points measured before a stop stay."
        )
    button = st.empty()
    label = "Train both again" if former_points else "Train both"
    if not button.button(label, key="train_both"):
        return former_points
    button.empty()
    points = trainings[name] = []
    with bar("Training both", lambda _: None) as report:
        for point in begin():
            points.append(point)
            report(point.step / PAIRED_STEPS)
    redraw()
    return points


def _draw_curves(
    points: list[TrainingPoint], column: str, what: str, spec: dict[str, Any], height: int | str
) -> None:
    """Draw the curves, and the last value of each in a sentence."""
    table: Table = {
        "step": [point.step for point in points],
        column: [point.value for point in points],
        "run": [point.curve for point in points],
    }
    chart(spec, table=table, height=height, key="museum_curves", title=what)
    last = {point.curve: point for point in points}
    values = "; ".join(f"{name}: {three(point.value)}" for name, point in last.items())
    step = next(iter(last.values())).step
    st.text(f"{what.capitalize()} at step {step}: {values}.")


def random_labels_code() -> None:
    for point in train_on_random_labels():
        print(point.step, point.curve, point.value)
