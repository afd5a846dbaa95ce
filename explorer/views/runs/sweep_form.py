"""The form of a sweep: a task, what its runs start from, and settings with several values each."""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from explorer.app import widget_state
from explorer.app.messages import say
from explorer.catalog import ModelError
from explorer.catalog.folders import own_name
from explorer.catalog.open_model import OpenModel, open_entry
from explorer.catalog.parameters import count_parameters
from explorer.runs.finetuning import new_head_seed
from explorer.runs.quotas import BYTES_OF_PARAMETER
from explorer.runs.run_differences import what_differs
from explorer.runs.spec import RunError, RunSpec
from explorer.runs.sweep import SETTINGS, TUNED_SETTINGS, grid, parsed, title_of
from explorer.system import limits
from explorer.tasks import GIVEN, TASKS
from explorer.text import TextError
from explorer.text.labels import literal
from explorer.text.number_format import megabytes
from explorer.views.training.own_text import OwnText, draw_own_text
from explorer.views.training.start_from import NEW_WEIGHTS, models_to_start_from

LONGEST_VALUES = 400
MOST_VALUES_NAMED = 8
"""Runs of a sweep that are named before its start."""


def draw_sweep_form(start: Callable[[Sequence[RunSpec], str, OwnText], None]) -> None:
    """The runs that the values make are named before the button that has `start` queue them."""
    titles = {name: task.title for name, task in TASKS.items()}
    titles |= {name: given.title for name, given in GIVEN.items()}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.selectbox(
            "Task",
            [*titles],
            format_func=titles.__getitem__,
            key="sweep_task",
            persist_state="session",
            width=280,
        )
        try:
            parent = _draw_parent(str(name))
        except ModelError as error:
            say(str(error))
            return
        swept = TUNED_SETTINGS if parent else SETTINGS
        names = st.multiselect(
            "Settings with several values",
            [*swept],
            ["lora_rank"] if parent else ["lr"],
            format_func=lambda each: swept[each].label,
            key="swept_settings_of_model" if parent else "swept_settings",
            persist_state="session",
        )
    own = draw_own_text(GIVEN[name], parent) if name in GIVEN else OwnText(parent=parent)
    values = dict[str, Sequence[Any]]()
    try:
        for setting in names:
            typed = st.text_input(
                swept[setting].label,
                key=f"swept_{setting}",
                placeholder=", ".join(swept[setting].options) or "Numbers, separated by commas",
                max_chars=LONGEST_VALUES,
                persist_state="session",
            )
            if typed:
                values[setting] = parsed(swept[setting], typed)
        if own is None:
            return
        task = own.task(str(name))
        if not values:
            most = limits.SWEEP_RUNS.in_words(limits.SWEEP_RUNS.most)
            st.caption(f"Every combination of the values is one run; at most {most}.")
            return
        specs = grid(task, values, parent=parent)
    except (RunError, TextError) as error:
        say(str(error))
        return
    named = what_differs(specs)
    more = f" and {len(named) - MOST_VALUES_NAMED} more" if len(named) > MOST_VALUES_NAMED else ""
    st.caption(f"{literal(' · '.join(named[:MOST_VALUES_NAMED]))}{more}")
    if parent:
        st.caption(_stored(parent, specs))
    st.button(
        f"Start {len(specs)} runs",
        key="start_sweep",
        type="primary",
        on_click=start,
        args=(specs, f"{task.name}: {title_of(values)}", own),
    )


def _draw_parent(task: str) -> OpenModel | None:
    """The model that all start from; None for new weights. ModelError where it cannot be opened."""
    models = models_to_start_from(task)
    if not models:
        return None
    options = (NEW_WEIGHTS, *models)
    if widget_state.get("sweep_from") not in options:
        widget_state.put("sweep_from", NEW_WEIGHTS)
    chosen = st.selectbox(
        "Start from", options, key="sweep_from", persist_state="session", width=200
    )
    return open_entry(models[chosen]) if chosen in models else None


def _stored(parent: OpenModel, specs: Sequence[RunSpec]) -> str:
    """How much of the disk the model takes that all start from."""
    size = megabytes(BYTES_OF_PARAMETER * count_parameters(specs[0].model))
    times = len({new_head_seed(parent, spec) for spec in specs})
    often = "once" if times == 1 else f"{times} times, once for each weight seed of its new head"
    return (
        f"All start from {literal(own_name(parent.name))}; its weights, {size}, are stored {often}."
    )
