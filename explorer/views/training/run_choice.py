"""Which run is shown: it lives in the address as `run`, and is found again in its folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from explorer.app import url
from explorer.app.messages import say
from explorer.app.session import session
from explorer.app.sidebar import choose_model, switch_page
from explorer.catalog.entries import runs_root
from explorer.runs.run import Run, RunError, all_runs, named
from explorer.views.training import run_words
from explorer.views.training.run_status import status_of
from models.loading.checkpoint import CheckpointError, peek

RUNS_LISTED = 50


def choose_run() -> Run | None:
    """The list of runs, the newest first. Nothing chosen yet: the one that is training."""
    runs = {run.name: run for run in all_runs(runs_root())[:RUNS_LISTED]}
    asked = url.current("run")
    if asked and asked not in runs:
        runs |= _older(asked)
    if not asked and (active := _first_active(list(runs.values()))):
        st.session_state["run"] = active.name
    if st.session_state.get("run") not in runs:
        st.session_state.pop("run", None)
    name = st.selectbox(
        "Run",
        list(runs),
        index=None,
        **url.bound("run"),
        placeholder="No run yet" if not runs else "Choose an earlier run",
        disabled=not runs,
    )
    return runs.get(str(name))


def earlier_runs() -> None:
    """Every run with how it stands and what was set otherwise; a click on its row shows it."""
    runs = all_runs(runs_root())[:RUNS_LISTED]
    if not runs:
        return

    def pick() -> None:
        rows = st.session_state["earlier_runs"]["selection"]["rows"]
        if rows and rows[0] < len(runs):
            show_run(runs[rows[0]])

    st.markdown("**Earlier runs** · click the box before a run to show it")
    st.dataframe(
        [run_words.row(run) for run in runs],
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


def show_run(run: Run) -> None:
    """Choose it; to be called before the list is drawn."""
    st.session_state["run"] = run.name


def open_elsewhere(run: Run) -> None:
    """The way from a run to the Attention page, with its model chosen there."""
    folder = run.checkpoint()
    if folder is None:
        return
    try:
        _, made = peek(folder)
    except (CheckpointError, OSError):
        return
    pages = session().pages
    chosen = st.button(
        f"Open {_said(run, made)} on the Attention page",
        key="open_run",
        type="primary",
        icon=":material/arrow_forward:",
        on_click=choose_model,
        args=(run.name,),
    )
    if chosen and "attention" in pages:
        switch_page("attention")


def _said(run: Run, made: Mapping[str, Any]) -> str:
    """The run, and the step where its weights are not those of its end."""
    step = made.get("steps")
    is_of_end = made.get("is_finished") is True or not isinstance(step, int)
    return run.name if is_of_end else f"step {step:,} of {run.name}"


def _older(name: str) -> dict[str, Run]:
    """A run that the list is too short for, or the sentence that there is none."""
    try:
        return {name: named(runs_root(), name)}
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
