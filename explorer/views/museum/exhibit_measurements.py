"""What an exhibit has besides two models: the document's numbers, trainings, counts."""

from collections.abc import Callable, Iterator
from typing import Any

import streamlit as st

from explorer.app.context import PageContext
from explorer.app.session import state_of
from explorer.catalog.open_model import OpenModel
from explorer.charts.training_curves import CURVES_HEIGHT, held_out_curves, loss_curves
from explorer.components.chart import Table, chart
from explorer.system.cooperative import interruptible
from explorer.tasks import TASKS
from explorer.text.number_format import three
from explorer.views.museum import document_numbers, paired_training
from explorer.views.museum.exhibits import Exhibit
from explorer.views.museum.mistakes.output_mistakes import lowest_loss
from explorer.views.museum.paired_training import CURVES, TrainingPoint

MEASUREMENT_COLUMNS = ("measurement", "with the mistake", "right")
FILL_COLUMNS = ("a fully masked row of three, filled with", "float32", "float16")
LARGE_MODEL = (
    "The notebook's own model has {count:,} parameters, {size:,.0f} MB, while this is computed; "
    "it takes some seconds."
)
TASK_OF_ALL = "negation"
SHORT_RUNS = (
    "Both training runs are short and tied to this page: leaving or reloading it ends them. Points "
    "measured before a stop stay."
)
ASIDES = {
    "lost-target": "The document's code needs a target as long as its source. Where the source "
    "is shorter here, its last row is repeated for the missing ones.",
    "fixed-heads": "Both models have the same weights, so only the split into heads differs: "
    "another expansion factor needs other weights, and is counted below.",
    "norm-order": "Both models have the same weights and the same config. In the right one the "
    "norms are placed as the config says: pre normalizes the input of a sublayer, post the sum "
    "after it. In the other they are placed the opposite way.",
    "no-padding-mask": "The document prints no logits. A quoted output of its code, "
    "(−0.387, 0.396) changed to (−0.373, 0.486), names no seed, so its digits cannot be "
    "reproduced. These are ours: untrained weights and twenty tokens, both from seed 0.",
}
"""What one must know to read the numbers correctly."""


class MuseumResults(dict[str, list[Any]]):
    """The numbers and trainings that were computed after a click, by name."""


def telling_number(exhibit: Exhibit) -> str:
    """The number that gives an exhibit away which has no models to compare."""
    if exhibit.name == "printed-count":
        _, printed, counted = document_numbers.DOCUMENT_NUMBERS[exhibit.name]()[0]
        return f"What gives it away: {printed} printed, {counted} counted."
    points: list[TrainingPoint] = state_of(MuseumResults).get("random_labels", [])
    last = {point.curve: three(point.value) for point in points}
    if len(last) < len(CURVES):
        return "What gives it away: two accuracies. Train both, below, to see them."
    learned, unseen, _ = (last[curve] for curve in CURVES)
    return (
        f"What gives it away: an accuracy of {learned} on the training batch, of {unseen} on "
        "texts that were not trained on."
    )


def draw_details(exhibit: Exhibit, context: PageContext) -> None:
    """The document's own numbers, and what only this exhibit has."""
    if aside := ASIDES.get(exhibit.name):
        st.text(aside)
    if exhibit.name in document_numbers.DOCUMENT_NUMBERS:
        st.markdown("**In the document's own configuration**")
        _draw_document_numbers(exhibit.name)
    if exhibit.name == "softmax-twice":
        _draw_softmax_trainings(context.opened)
    if exhibit.name == "random-labels":
        _draw_random_label_trainings()
    if exhibit.name == "printed-count":
        _draw_parameter_counts(context.opened)


def _draw_document_numbers(name: str) -> None:
    compute = document_numbers.DOCUMENT_NUMBERS[name]
    results = state_of(MuseumResults)
    if name in document_numbers.LARGE and name not in results:
        notebook = document_numbers.NOTEBOOK_TUTORIAL
        count, size = document_numbers.parameters_and_bytes(notebook)
        st.text(LARGE_MODEL.format(count=count, size=size / 1e6))
        if not st.button("Compute them", key="compute"):
            return
        with st.spinner("Building the notebook's model"):
            results[name] = compute()
    lines = results.get(name) or compute()
    columns = FILL_COLUMNS if name == "filled-row" else MEASUREMENT_COLUMNS
    st.table(
        {column: [line[i] for line in lines] for i, column in enumerate(columns)},
        border="horizontal",
        hide_index=True,
        alt="Numbers of the document's own configuration, with the mistake and right",
    )


def _draw_softmax_trainings(opened: OpenModel) -> None:
    task = opened.task or TASKS[TASK_OF_ALL]
    outputs = len(task.classes) if task.model.head == "classifier" else task.model.vocab_size
    st.markdown("**Two training runs from the same weights**")
    st.text(
        f"Task {task.name}, {paired_training.PAIRED_STEPS} steps of 32. With the softmax inside, "
        f"the loss cannot fall below {three(lowest_loss(outputs))}."
    )
    points = _draw_training_buttons(
        f"softmax_{task.name}",
        lambda: paired_training.train_softmax_twice(task, paired_training.PAIRED_STEPS),
    )
    if points:
        top = max(point.value for point in points)
        chart = loss_curves(paired_training.PAIRED_STEPS, top, run="run")
        _draw_curves(points, "loss", "loss", chart, CURVES_HEIGHT)


def _draw_random_label_trainings() -> None:
    st.markdown("**Training on random labels, and on a task**")
    st.text(
        f"The web tutorial's classifier, 389,218 parameters, on 16 × 20 random tokens, "
        f"{paired_training.PAIRED_STEPS} steps; beside it the small classifier of the task "
        "negation. The document measures with dropout on; here it is off."
    )
    points = _draw_training_buttons(
        "random_labels",
        lambda: paired_training.train_on_random_labels(paired_training.PAIRED_STEPS),
    )
    if points:
        chart = held_out_curves("accuracy", paired_training.PAIRED_STEPS, run="run")
        _draw_curves(points, "value", "accuracy", chart, CURVES_HEIGHT + 60)


def _draw_training_buttons(
    name: str, begin: Callable[[], Iterator[TrainingPoint]]
) -> list[TrainingPoint]:
    """The points so far; a click trains, another one stops, and the points stay."""
    results = state_of(MuseumResults)
    before: list[TrainingPoint] = results.get(name, [])
    st.text(SHORT_RUNS)
    button, bar = st.empty(), st.empty()
    if not button.button("Train both" if not before else "Train both again", key="train_both"):
        return before
    button.button("Stop", key="stop_both")
    points = results[name] = []
    for point in interruptible(begin()):
        points.append(point)
        share = point.step / paired_training.PAIRED_STEPS
        bar.progress(share, f"Step {point.step} of {paired_training.PAIRED_STEPS}")
    bar.empty()
    st.rerun()


def _draw_curves(
    points: list[TrainingPoint], column: str, what: str, spec: dict[str, Any], height: int
) -> None:
    """The curves, and the last value of each in words."""
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


def _draw_parameter_counts(opened: OpenModel) -> None:
    counts = {
        name: document_numbers.parameter_count(module)
        for name, module in opened.model.named_children()
    }
    counts = {name: count for name, count in counts.items() if count}
    total = document_numbers.parameter_count(opened.model)
    if shared := sum(counts.values()) - total:
        counts["counted twice, since shared"] = -shared
    counts["total"] = total
    st.markdown("**The chosen model, part by part**")
    st.table(
        {"part": list(counts), "parameters": [f"{count:,}" for count in counts.values()]},
        border="horizontal",
        hide_index=True,
        alt="The parts of the chosen model and their numbers of parameters",
    )
