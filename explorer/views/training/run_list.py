"""The list of runs; the one on screen is in the address as `run`, and is found in its folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from explorer.app import url
from explorer.app.choosing import choose_model, switch_page
from explorer.app.messages import say
from explorer.app.session import session
from explorer.catalog.folders import runs_root
from explorer.runs.run import Run, RunError, all_runs, run_named
from explorer.views.training.run_comparison import draw_run_comparison
from explorer.views.training.run_words import run_row, status_of
from models.loading.checkpoint import CheckpointError, peek

RUNS_LISTED = 50


def choose_run() -> Run | None:
    """The run on screen, from the list of runs, the newest first; at first the one that trains."""
    runs = {run.name: run for run in all_runs(runs_root())[:RUNS_LISTED]}
    asked = url.current_value("run") or None
    if asked is not None and asked not in runs:
        runs |= _older_run(str(asked))
    if asked is None and (active := _first_active(list(runs.values()))):
        st.session_state["run"] = active.name
    if st.session_state.get("run") not in runs:
        st.session_state.pop("run", None)
    name = st.selectbox(
        "Run",
        list(runs),
        index=None,
        placeholder="Choose an earlier run" if runs else "No run yet",
        disabled=not runs,
        **url.bound("run"),
    )
    return runs.get(str(name))


def draw_run_list() -> None:
    """Every run with its state and its changed settings; a click on its row shows it."""
    runs = all_runs(runs_root())[:RUNS_LISTED]
    if not runs:
        return

    def pick() -> None:
        rows = st.session_state["earlier_runs"]["selection"]["rows"]
        if rows and rows[0] < len(runs):
            choose_run_next(runs[rows[0]])

    st.markdown("**Earlier runs** · click the box of a run to show it")
    st.dataframe(
        [run_row(run) for run in runs],
        key="earlier_runs",
        on_select=pick,
        selection_mode="single-row",
        hide_index=True,
        width="stretch",
        height=min(246, 37 + 35 * len(runs)),
        column_config={
            "step": st.column_config.NumberColumn(format="localized"),
            "held out": st.column_config.NumberColumn(format="%.3g"),
        },
    )
    draw_run_comparison(runs)


def choose_run_next(run: Run) -> None:
    """Show this run; called before the list is drawn."""
    st.session_state["run"] = run.name


def draw_open_button(run: Run) -> None:
    """From a run to the Attention page, with its model chosen there."""
    folder = run.checkpoint()
    if folder is None:
        return
    try:
        _, made = peek(folder)
    except (CheckpointError, OSError):
        return
    pages = session().pages
    chosen = st.button(
        f"Open {_weights_name(run, made)} on Attention maps",
        key="open_run",
        type="primary",
        icon=":material/arrow_forward:",
        on_click=choose_model,
        args=(run.name,),
    )
    if chosen and "attention" in pages:
        switch_page("attention")


def _weights_name(run: Run, made: Mapping[str, Any]) -> str:
    """The run, and the step of its weights where it is not finished."""
    step = made.get("steps")
    is_finished = made.get("is_finished") is True or not isinstance(step, int)
    return run.name if is_finished else f"step {step:,} of {run.name}"


def _older_run(name: str) -> dict[str, Run]:
    """A run that is too old for the list; a sentence where there is none of this name."""
    try:
        return {name: run_named(runs_root(), name)}
    except RunError as error:
        say(str(error))
        return {}


def _first_active(runs: list[Run]) -> Run | None:
    for run in runs[:10]:
        try:
            if status_of(run).is_active:
                return run
        except RunError:
            continue
    return None
