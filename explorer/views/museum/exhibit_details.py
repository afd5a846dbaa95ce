"""What an exhibit has besides its two runs: the document's numbers, a training, fills, a ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import streamlit as st

from explorer.app.context import page_context
from explorer.catalog.opened_model import Opened
from explorer.charts.training_curves import HEIGHT, held_out, loss
from explorer.tasks import TASKS, Task
from explorer.text.number_format import three
from explorer.views.museum import document_numbers, paired_training
from explorer.views.museum.exhibits import Exhibit
from explorer.views.museum.mistakes.output_mistakes import lowest_loss
from explorer.views.museum.paired_training import Point

USUAL = ("what", "with the mistake", "right")
HEADS = {
    "filled-row": ("a row of three that may see nothing, filled with", "float32", "half precision")
}
LARGE = (
    "The notebook's own model has {count:,} parameters, {size:,.0f} MB, while this is computed; "
    "it takes some seconds."
)
TASK_OF_ALL = "negation"
SHORT = (
    "Both runs are short and belong to this page: leaving or reloading it ends them. What was "
    "measured before a stop stays."
)
ASIDES = {
    "lost-target": "The document's code needs a target as long as its source. Where the source "
    "is shorter here, its last row stands in for the rows that are missing.",
    "fixed-heads": "Both runs have the same weights, so only the heads are cut anew there: another "
    "expansion factor needs other weights, and is counted below.",
    "norm-order": "Both runs have the same weights and the same config. The right run norms where "
    "the config says: pre is what a part reads, post the sum of stream and part. The other run "
    "does the opposite.",
    "no-padding-mask": "The document prints no logits. A run of its code that is quoted, "
    "(−0.387, 0.396) moved to (−0.373, 0.486), names no seed, so its digits cannot be had again. "
    "These are ours: fresh weights and twenty tokens, both from seed 0.",
}
"""What must be known to read the numbers rightly."""


def numbers(exhibit: Exhibit) -> str:
    """The number that gives an exhibit away which is no run of a model."""
    if exhibit.name == "printed-count":
        _, printed, counted = document_numbers.FIGURES[exhibit.name]()[0]
        return f"What gives it away: {printed} printed, {counted} counted."
    points: list[Point] = st.session_state.get("_museum_random_labels", [])
    last = {point.curve: three(point.value) for point in points}
    if len(last) < len(paired_training.CURVES):
        return "What gives it away: two accuracies. Train both, below, to see them."
    learned, never_seen, _ = (last[curve] for curve in paired_training.CURVES)
    return (
        f"What gives it away: an accuracy of {learned} on the batch just learned, of "
        f"{never_seen} on texts never seen."
    )


def show(exhibit: Exhibit) -> None:
    """The document's own numbers, and what only this exhibit has."""
    if aside := ASIDES.get(exhibit.name):
        st.text(aside)
    if exhibit.name in document_numbers.FIGURES:
        st.markdown("**In the document's own configuration**")
        _figures(exhibit.name)
    if exhibit.name == "softmax-twice":
        _softmax_twice()
    if exhibit.name == "random-labels":
        _random_labels()
    if exhibit.name == "printed-count":
        _ledger_of_chosen()


def _figures(name: str) -> None:
    place = f"_museum_{name}"
    if name in document_numbers.LARGE and place not in st.session_state:
        count, size = document_numbers.size_of(document_numbers.notebook_tutorial())
        st.text(LARGE.format(count=count, size=size / 1e6))
        if not st.button("Compute them", key="compute"):
            return
        with st.spinner("Making the notebook's model"):
            st.session_state[place] = document_numbers.FIGURES[name]()
    found = st.session_state.get(place) or document_numbers.FIGURES[name]()
    heads = HEADS.get(name, USUAL)
    st.table(
        {head: [line[i] for line in found] for i, head in enumerate(heads)},
        border="horizontal",
        hide_index=True,
        alt="Numbers of the document's own configuration, with the mistake and right",
    )


def _softmax_twice() -> None:
    task = _task(page_context().opened)
    low = lowest_loss(
        task.model.vocab_size if task.model.head != "classifier" else len(task.classes)
    )
    st.markdown("**Two trainings from the same weights**")
    st.text(
        f"Task {task.name}, {paired_training.STEPS} steps of 32. With the softmax inside, the loss "
        f"cannot fall below {three(low)}."
    )
    points = _trained(
        f"softmax_{task.name}", lambda: paired_training.softmax_twice(task, paired_training.STEPS)
    )
    if points:
        top = max(point.value for point in points)
        st.vega_lite_chart(
            _table(points, "loss"),
            loss(paired_training.STEPS, top, run="run"),
            height=HEIGHT,
            key="museum_curves",
        )
        _last(points, "loss")


def _random_labels() -> None:
    st.markdown("**Learning noise beside learning a task**")
    st.text(
        f"The web tutorial's classifier, 389,218 parameters, on 16 × 20 random tokens, "
        f"{paired_training.STEPS} steps; beside it the small classifier of the task negation. "
        "The document measures with dropout on; here it is off."
    )
    points = _trained("random_labels", lambda: paired_training.random_labels(paired_training.STEPS))
    if points:
        st.vega_lite_chart(
            _table(points, "value"),
            held_out("accuracy", paired_training.STEPS, run="run"),
            height=HEIGHT + 60,
            key="museum_curves",
        )
        _last(points, "accuracy")


def _trained(name: str, begin: Callable[[], Iterator[Point]]) -> list[Point]:
    """What was trained so far; a click trains, another one stops, and what came stays."""
    place = f"_museum_{name}"
    before: list[Point] = st.session_state.get(place, [])
    st.text(SHORT)
    button, bar = st.empty(), st.empty()
    if not button.button("Train both" if not before else "Train both again", key="train_both"):
        return before
    button.button("Stop", key="stop_both")
    points: list[Point] = []
    st.session_state[place] = points
    for point in begin():
        points.append(point)
        bar.progress(
            point.step / paired_training.STEPS, f"Step {point.step} of {paired_training.STEPS}"
        )
    bar.empty()
    st.rerun()


def _table(points: list[Point], value: str) -> dict[str, list[Any]]:
    return {
        "step": [point.step for point in points],
        value: [point.value for point in points],
        "run": [point.curve for point in points],
    }


def _last(points: list[Point], what: str) -> None:
    """The last value of every curve, in words."""
    last = {point.curve: point for point in points}
    said = "; ".join(f"{name}: {three(point.value)}" for name, point in last.items())
    step = next(iter(last.values())).step
    st.text(f"{what.capitalize()} at step {step}: {said}.")


def _task(opened: Opened) -> Task:
    """The chosen model's own task where it is one of the small ones."""
    return opened.task if opened.task is not None else TASKS[TASK_OF_ALL]


def _ledger_of_chosen() -> None:
    opened = page_context().opened
    parts = {
        name: document_numbers.count_of(module)
        for name, module in opened.model.named_children()
        if document_numbers.count_of(module)
    }
    total = document_numbers.count_of(opened.model)
    shared = sum(parts.values()) - total
    st.markdown("**The chosen model, part by part**")
    st.table(
        {
            "part": [*parts, *(["counted twice, since shared"] if shared else []), "total"],
            "parameters": [
                f"{count:,}" for count in (*parts.values(), *([-shared] if shared else []), total)
            ],
        },
        border="horizontal",
        hide_index=True,
        alt="The parts of the chosen model and how many parameters each has",
    )
