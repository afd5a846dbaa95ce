"""The form of the Train page: a task, its model, its optimizer, and the start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from explorer.app import url
from explorer.app.messages import say
from explorer.catalog.entries import runs_root
from explorer.runs.cluster import cluster
from explorer.runs.request import Wishes, built_like, spec_of
from explorer.runs.run import Run, RunError, create
from explorer.runs.spec import RunSpec
from explorer.tasks import GIVEN, TASKS, Given, Task, task_of
from explorer.text import TextError
from explorer.text.limits import MAX_CORPUS_CHARACTERS
from explorer.views.training.run_choice import show_run
from models.config import ACTIVATIONS, NORM_POSITIONS, NORMS, POSITIONS
from models.presets import LIKE, PRESETS, kind_of
from models.training import OPTIMIZERS, SCHEDULES

OWN_SHAPE = "the task's own"
BYTES_PER_CHARACTER = 4
MOST_PASTED = 200_000
"""A pasted text travels with every click on the page; a file is sent once."""


def form() -> Task | None:
    """Draw the form; the task that is chosen, or None while its text is missing.

    Whoever sees it may train soon, so the processes that do are started meanwhile.
    """
    cluster().start()
    st.session_state["_spec_asked_for"] = None
    name = st.selectbox("Task", [*TASKS, *GIVEN], **url.bound("task"))
    known = TASKS.get(name) or GIVEN[name]
    st.caption(f"**{known.title}.** {known.explanation}")
    text = _text_for(known) if isinstance(known, Given) else None
    if isinstance(known, Given) and text is None:
        st.button("Start training", type="primary", width="stretch", disabled=True)
        return None
    try:
        task = task_of(name, text)
    except TextError as error:
        say(str(error))
        return None
    start = st.container()
    wishes = Wishes(**_model(task), **_training(task))
    try:
        spec = spec_of(task, wishes)
    except RunError as error:
        say(str(error))
        start.button("Start training", type="primary", width="stretch", disabled=True)
        return task
    st.session_state["_spec_asked_for"] = spec
    if start.button("Start training", type="primary", width="stretch", key="start_training"):
        with start, st.spinner("Starting the training processes …"):
            _start(spec, text)
    return task


def asked_for(run: Run | None) -> RunSpec | None:
    """What the run that is shown was asked to do, or what the form asks for, if it can be run."""
    if run is None:
        return st.session_state.get("_spec_asked_for")
    try:
        return run.spec
    except RunError:
        return None


def _start(spec: RunSpec, text: str | None) -> None:
    try:
        run = create(runs_root(), spec, text)
        show_run(run)
        cluster().submit(run)
    except (RunError, OSError) as error:
        say(str(error))


def _text_for(given: Given) -> str | None:
    """The text that the task is made of: pasted or uploaded, and looked at again here."""
    kind = "csv" if given.wants == "table" else "txt"
    pasted = st.text_area(
        "Paste a text" if kind == "txt" else "Paste a table: columns text and label",
        key=f"pasted_{given.name}",
        height=140,
        persist_state="session",
    )
    file = st.file_uploader(f"or upload a .{kind} file", type=[kind], key=f"file_{given.name}")
    if file is None and len(pasted) > MOST_PASTED:
        say(f"Upload a file instead: {MOST_PASTED:,} characters are pasted at most.")
        return None
    if file is None:
        return pasted or None
    if file.size > BYTES_PER_CHARACTER * MAX_CORPUS_CHARACTERS:
        say(f"The file is too long; {MAX_CORPUS_CHARACTERS:,} characters are read at most.")
        return None
    try:
        return file.getvalue().decode("utf-8-sig")
    except UnicodeDecodeError:
        say("The file is not a text in UTF-8; save it as one and upload it again.")
        return None


def _model(task: Task) -> dict[str, Any]:
    with st.expander(f"Model · {task.model.kind}", expanded=False):
        family = _family(task)
        at = built_like(task.model, family)
        draw = _Inputs(f"{task.name}_{family}" if family else task.name)
        return {
            "like": family,
            "layers": draw.whole("Layers", "layers", at.n_layers, 1, 12),
            "heads": draw.whole("Heads", "heads", at.n_heads, 1, 16),
            "d_model": draw.whole("d_model", "d_model", at.d_model, 4, 512, 4),
            "d_ff": draw.whole("d_ff (0: none)", "d_ff", at.d_ff, 0, 2048, 16),
            "positions": draw.one_of("Positions", "positions", POSITIONS, at.positions),
            "norm": draw.one_of("Norm", "norm", NORMS, at.norm),
            "norm_position": draw.one_of(
                "Norm stands", "norm_position", NORM_POSITIONS, at.norm_position
            ),
            "activation": draw.one_of("Activation", "activation", ACTIVATIONS, at.activation),
            "dropout": draw.number("Dropout", "dropout", at.dropout, 0.0, 0.9, 0.05, "%.2f"),
            "weights_seed": draw.whole("Seed of the weights", "weights_seed", 0, 0, 9999),
        }


def _family(task: Task) -> str | None:
    """The published family whose shape the model gets, so that it can be exported as one."""
    fitting = [name for name in (*LIKE, *PRESETS) if kind_of(name) == task.model.kind]
    if not fitting:
        return None
    chosen = _Inputs(task.name).one_of("Built like", "like", [OWN_SHAPE, *fitting], OWN_SHAPE)
    return None if chosen == OWN_SHAPE else chosen


def _training(task: Task) -> dict[str, Any]:
    at = task.training
    with st.expander(f"Optimizer · {at.steps:,} steps", expanded=False):
        draw = _Inputs(task.name)
        values: dict[str, Any] = {
            "lr": draw.number("Learning rate", "lr", at.lr, 0.0, 10.0, 1e-3, "%.2g"),
            "schedule": draw.one_of("Schedule", "schedule", SCHEDULES, at.schedule),
            "warmup": draw.whole("Warm-up steps", "warmup", at.warmup, 0, 10_000, 10),
            "steps": draw.whole("Steps", "steps", at.steps, 1, 100_000, 100),
            "batch_size": draw.whole("Batch", "batch_size", at.batch_size, 1, 512, 8),
            "optimizer": draw.one_of("Optimizer", "optimizer", OPTIMIZERS, at.optimizer),
            "label_smoothing": draw.number(
                "Label smoothing", "label_smoothing", at.label_smoothing, 0.0, 0.5, 0.05, "%.2f"
            ),
            "weight_decay": draw.number(
                "Weight decay", "weight_decay", at.weight_decay, 0.0, 2.0, 0.01, "%.2f"
            ),
            "seed": draw.whole("Seed of the data", "seed", at.seed, 0, 9999),
        }
        if draw.switch(f"Stop at {task.goal:g} held out", "stop_at_goal"):
            values["stop_at"] = task.goal
        return values


class _Inputs:
    """Small inputs, two in a row; every task keeps its own values."""

    def __init__(self, task: str) -> None:
        self._task = task
        self._columns: Sequence[Any] = ()
        self._drawn = 0

    def whole(self, label: str, name: str, value: int, low: int, high: int, step: int = 1) -> int:
        return int(
            self._place().number_input(
                label,
                min_value=min(low, value),
                max_value=max(high, value),
                value=value,
                step=step,
                key=self._key(name),
                persist_state="session",
            )
        )

    def number(
        self, label: str, name: str, value: float, low: float, high: float, step: float, form: str
    ) -> float:
        return float(
            self._place().number_input(
                label,
                min_value=min(low, float(value)),
                max_value=max(high, float(value)),
                value=float(value),
                step=step,
                format=form,
                key=self._key(name),
                persist_state="session",
            )
        )

    def one_of(self, label: str, name: str, options: Sequence[str], value: str) -> str:
        chosen = self._place().selectbox(
            label,
            options,
            index=options.index(value),
            key=self._key(name),
            persist_state="session",
        )
        return str(chosen)

    def switch(self, label: str, name: str) -> bool:
        return bool(self._place().toggle(label, key=self._key(name), persist_state="session"))

    def _key(self, name: str) -> str:
        return f"{self._task}_{name}"

    def _place(self) -> Any:
        if self._drawn % 2 == 0:
            self._columns = st.columns(2, vertical_alignment="bottom")
        self._drawn += 1
        return self._columns[(self._drawn - 1) % 2]
