"""The form of the Training page: a task, its model, its optimizer, and the start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.app import limits
from explorer.app.controls import one_of
from explorer.app.messages import say
from explorer.app.reader_runs import whose, whose_network
from explorer.app.session import session
from explorer.catalog import in_a_sentence
from explorer.runs.cluster import cluster
from explorer.runs.run import Run, RunError
from explorer.runs.settings import (
    MODEL_SETTINGS,
    TRAINING_SETTINGS,
    WEIGHTS_SEED,
    Setting,
    built_like,
    spec_of,
)
from explorer.runs.spec import RunSpec
from explorer.tasks import GIVEN, TASKS, Given, Task, task_of
from explorer.text import TextError
from explorer.text.number_format import three
from explorer.views.training.run_list import choose_run_next
from models.families.styles import LIKE, kind_of
from models.presets import PRESETS
from models.training import TrainConfig, learning_rate

TASK_SHAPE = "task default"
BYTES_OF_CHARACTER = 4
"""At most, in UTF-8: a file that cannot fit is refused unread."""
MOST_PASTED = 200_000
"""A pasted text is sent with every click on the page; a file is sent once."""


def draw_form() -> Task | None:
    """The form; the task that is chosen, or None while its text is missing.

    The training processes are started meanwhile.
    """
    cluster().start()
    session().run_requested = None
    name = one_of("Task", "task", [*TASKS, *GIVEN], as_list=True)
    known = TASKS.get(name) or GIVEN[name]
    st.caption(f"**{known.title}.** {known.explanation}")
    text = _draw_text(known) if isinstance(known, Given) else None
    if isinstance(known, Given) and text is None:
        _draw_start_button(st, is_possible=False)
        return None
    try:
        task = task_of(name, text)
    except TextError as error:
        say(str(error))
        return None
    start = st.container()
    settings = _draw_model_settings(task)
    of_training, beside_steps = _draw_training_settings(task)
    settings |= of_training
    try:
        spec = spec_of(task, settings)
    except RunError as error:
        _draw_start_button(start, is_possible=False)
        is_of_steps = not limits.RUN_STEPS.allows(settings["steps"])
        for place in (start, beside_steps) if is_of_steps else (start,):
            with place:  # with both forms open the button is off the screen
                say(str(error))
        return task
    session().run_requested = spec
    if sentence := _warm_up_words(spec.training):
        beside_steps.caption(sentence)
    if _draw_start_button(start, is_possible=True):
        with start, st.spinner("Starting the training processes"):
            _start(spec, text)
    return task


def requested_spec(run: Run | None) -> RunSpec | None:
    """The settings of the run on screen, or those of the form, if they can be trained."""
    if run is None:
        spec: RunSpec | None = session().run_requested
        return spec
    try:
        return run.spec
    except RunError:
        return None


def _draw_start_button(place: Any, is_possible: bool) -> bool:
    key = "start_training" if is_possible else None
    label = "Start training"
    return bool(
        place.button(label, type="primary", width="stretch", key=key, disabled=not is_possible)
    )


def _start(spec: RunSpec, text: str | None) -> None:
    try:
        choose_run_next(cluster().train_new(spec, text, whose(), whose_network()))
    except (RunError, OSError) as error:
        say(in_a_sentence(error))


def _draw_text(given: Given) -> str | None:
    """The text of the task: pasted or uploaded, and checked again here."""
    kind = "csv" if given.wants == "table" else "txt"
    pasted = st.text_area(
        "Text" if kind == "txt" else "Table with the columns text and label",
        key=f"pasted_{given.name}",
        height=140,
        persist_state="session",
    )
    st.button("Use this text" if kind == "txt" else "Use this table", key=f"use_{given.name}")
    largest = BYTES_OF_CHARACTER * limits.CORPUS_CHARACTERS.most
    file = st.file_uploader(
        f"Or a .{kind} file",
        type=[kind],
        key=f"file_{given.name}",
        max_upload_size=largest // 1_000_000 or 1,
    )
    if file is None and len(pasted) > MOST_PASTED:
        say(f"Pasted text can have at most {MOST_PASTED:,} characters: upload a file instead.")
        return None
    if file is None:
        return pasted or None
    if file.size > largest:
        say(f"The file is too long; {limits.CORPUS_CHARACTERS.most:,} characters at most.")
        return None
    try:
        return file.getvalue().decode("utf-8-sig")
    except UnicodeDecodeError:
        say("The file is not UTF-8 text; save it as UTF-8 and upload it again.")
        return None


def _draw_model_settings(task: Task) -> dict[str, Any]:
    with st.expander(f"Model · {task.model.kind}", expanded=False):
        fitting = [name for name in (*LIKE, *PRESETS) if kind_of(name) == task.model.kind]
        family = None
        if fitting:
            shape = Setting("like", "Shape of", (TASK_SHAPE, *fitting))
            chosen = _Inputs(task.name).draw(shape, TASK_SHAPE)
            family = None if chosen == TASK_SHAPE else chosen
        config = built_like(task.model, family)
        inputs = _Inputs(f"{task.name}_{family}" if family else task.name)
        values = {
            each.name: inputs.draw(each, getattr(config, each.field)) for each in MODEL_SETTINGS
        }
        return values | {"like": family, "weights_seed": inputs.draw(WEIGHTS_SEED, 0)}


def _draw_training_settings(task: Task) -> tuple[dict[str, Any], DeltaGenerator]:
    """The values, and a place below the number of steps."""
    config, inputs, values = task.training, _Inputs(task.name), dict[str, Any]()
    steps = st.session_state.get(inputs.key("steps"), config.steps)
    below_steps = None
    with st.expander(f"Optimizer · {steps:,} steps", expanded=False, key="optimizer"):
        for each in TRAINING_SETTINGS:
            values[each.name] = inputs.draw(each, getattr(config, each.name))
            if each.name == "steps":
                below_steps = st.container()
        if inputs.switch(f"Stop at {task.goal:g} on held-out data", "stop_at_goal"):
            values["stop_at"] = task.goal
    assert below_steps is not None
    return values, below_steps


def _warm_up_words(training: TrainConfig) -> str:
    """What a warm-up that the run does not outlast means; nothing of any other."""
    if training.warmup <= training.steps:
        return ""
    reached = learning_rate(training, training.steps - 1)
    return (
        "The run ends during the warm-up, so its learning rate only rises to "
        f"{three(reached)}, not {three(training.lr)}."
    )


class _Inputs:
    """Small inputs, two numbers or one choice in a row; every task keeps its own values."""

    def __init__(self, task: str) -> None:
        self._task = task
        self._columns: Sequence[Any] = ()
        self._drawn = 0

    def draw(self, setting: Setting, value: Any) -> Any:
        """The value chosen for this setting, at first `value`."""
        key = self.key(setting.name)
        if setting.options:
            self._drawn += self._drawn % 2  # a row of its own: half of one cuts its texts
            return st.selectbox(
                setting.label,
                setting.options,
                index=setting.options.index(value),
                key=key,
                persist_state="session",
            )
        kind = float if setting.format else int
        return self._place().number_input(
            setting.label,
            min_value=kind(min(setting.low, value)),
            max_value=kind(max(setting.high, value)),
            value=kind(value),
            step=kind(setting.step),
            format=setting.format or None,
            key=key,
            persist_state="session",
        )

    def switch(self, label: str, name: str) -> bool:
        """In a row of its own, and on two lines where that is narrow."""
        self._drawn += self._drawn % 2
        return st.toggle(label, wrap=True, key=self.key(name), persist_state="session")

    def key(self, name: str) -> str:
        """That of the setting of this name."""
        return f"{self._task}_{name}"

    def _place(self) -> Any:
        if self._drawn % 2 == 0:
            self._columns = st.columns(2, vertical_alignment="bottom")
        self._drawn += 1
        return self._columns[(self._drawn - 1) % 2]
