"""The list of runs; the one on screen is in the address as `run`, and is found in its folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from explorer.app import limits, shelves, streamlit_patches, url
from explorer.app.choosing import choose_model, draw_page_link, switch_page
from explorer.app.controls import chosen_rows
from explorer.app.messages import say
from explorer.app.reader import sees_everything
from explorer.app.reader_runs import found_run, is_own, listed_runs, may_change, own_runs
from explorer.app.session import session
from explorer.runs.cluster import cluster
from explorer.runs.run import Run, RunError
from explorer.runs.spec import is_step
from explorer.views.compare.sides import STEP
from explorer.views.training.run_comparison import draw_run_comparison
from explorer.views.training.run_words import duration, run_row, status_of
from models.loading.checkpoint import CheckpointError, peek

DELETE_WIDTH = 260
"""Pixels, between the button and the right edge of the page."""


def run_on_screen() -> Run | None:
    """The run that `choose_run` will show, for what is drawn before it; nothing is drawn."""
    state = st.session_state
    is_asked = "run" not in state or streamlit_patches.came_back()
    name = (url.asked("run") if is_asked else state["run"]) or None
    if name is None:
        return _first_active(own_runs())
    try:
        return found_run(name)
    except RunError:
        return None


def choose_run() -> Run | None:
    """The run on screen, from the reader's runs; at first the one of theirs that trains."""
    runs = {run.name: run for run in listed_runs()}
    name = _settle_run(runs)
    labels = shelves.labels(runs)
    picked = st.selectbox(
        "Run",
        list(runs),
        index=None,
        format_func=labels.__getitem__,
        placeholder="Choose an earlier run" if runs else "No run yet",
        disabled=not runs,
        key="run",
        persist_state="session",
        label_visibility="collapsed",
    )
    if picked != name:
        _name_in_address(picked)
    return runs.get(str(picked))


def _settle_run(runs: dict[str, Run]) -> str | None:
    """The name of the run on screen, before the list is drawn: in the address, and in `runs`.

    The list shows what a run is called, an address what finds it. So the two are not bound.
    """
    state = st.session_state
    is_asked = "run" not in state or streamlit_patches.came_back()
    name = (url.asked("run") if is_asked else state["run"]) or None
    if name is not None and name not in runs:
        try:
            runs[name] = found_run(name)
        except RunError as error:
            say(str(error))
            name = None
    if name is None and (active := _first_active(own_runs())):
        name = active.name
    if state.get("run") != name or is_asked:
        state["run"] = name
    _name_in_address(name)
    return name


def _name_in_address(name: str | None) -> None:
    if name is None:
        url.remove("run")
    else:
        url.write("run", name)


def draw_run_list() -> None:
    """Every run with its state and its changed settings; a click on its row shows it."""
    runs = listed_runs()
    if not runs:
        return

    def pick() -> None:
        for row in chosen_rows(st.session_state["earlier_runs"], len(runs))[:1]:
            choose_run_next(runs[row])

    whose = _whose(runs)
    st.markdown("**Earlier runs** · click the box of a run to show it" + _how_long())
    st.dataframe(
        [run_row(run) | whose.get(run.name, {}) for run in runs],
        key="earlier_runs",
        on_select=pick,
        selection_mode="single-row",
        hide_index=True,
        width="stretch",
        height=min(246, 37 + 35 * len(runs)),
        column_config={
            "step": st.column_config.NumberColumn(format="localized"),
            "held out": st.column_config.TextColumn(alignment="right"),
        },
    )
    draw_run_comparison(runs)


def _how_long() -> str:
    """What is said of the runs that are deleted some day, which are those of strangers."""
    days = limits.RUNS_DAYS
    return "" if sees_everything() else f" · each is kept for {days.in_words(days.most)}"


def choose_run_next(run: Run) -> None:
    """Show this run; called before the list is drawn."""
    st.session_state["run"] = run.name


def _whose(runs: list[Run]) -> dict[str, dict[str, str]]:
    """A cell for each run where not all are the reader's: who runs the server sees those of all."""
    others = {run.name: (run.owner or "")[:6] for run in runs if not is_own(run)}
    if not others:
        return {}
    return {run.name: {"whose": others.get(run.name, "yours")} for run in runs}


def draw_buttons(run: Run) -> None:
    """What can be done with the run as a whole: open its model, delete it."""
    with st.container(horizontal=True, vertical_alignment="center"):
        _draw_open_button(run)
        _draw_watch_button(run)
        draw_page_link("inside_training", "Look inside its training", run=run.name)
        _draw_compare_button(run)
        if may_change(run):
            _draw_delete_button(run)


def _draw_delete_button(run: Run) -> None:
    """In two steps, since it also stops the run."""
    popover = st.popover("Delete", icon=":material/delete:", key="delete")
    with popover, st.container(width=DELETE_WIDTH):  # a wider one would hang over the sidebar
        st.markdown(
            f"This deletes **{run.title}**: its metrics, its weights, and the text it was trained "
            "on. If it is training, it is stopped first. The page Runs can bring it back for "
            f"{duration(limits.UNDO_SECONDS.most)}, unless another of your runs needs its space."
        )
        st.button(
            f"Delete {run.title}", key="delete_run", type="primary", on_click=_delete, args=(run,)
        )


def _delete(run: Run) -> None:
    if not may_change(run):
        return
    try:
        cluster().delete(run)
        st.session_state["run"] = None
    except RunError as error:
        session().run_fault = str(error)


def _draw_open_button(run: Run) -> None:
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
        on_click=_open_model,
        args=(run.name,),
    )
    if chosen and "attention" in pages:
        switch_page("attention")


def _draw_watch_button(run: Run) -> None:
    """To its training as a film, which begins with the first weights."""
    page = "training_history"
    if page not in session().pages or run.latest() is None:
        return
    icon = ":material/arrow_forward:"
    label, args = "Watch it again", (run.name,)
    if st.button(label, key="watch_run", icon=icon, on_click=_open_model, args=args):
        switch_page(page)


def _draw_compare_button(run: Run) -> None:
    """Of a fine-tuned model with what it started from, which is its step 0."""
    page = "compare"
    if page not in session().pages or not run.checkpoint():
        return
    if not run.is_readable() or not run.spec.parent:
        return
    icon = ":material/arrow_forward:"
    label, args = "Compare with what it started from", (run.name,)
    if st.button(label, key="compare_run", icon=icon, on_click=_open_model, args=args):
        switch_page(page, **{"with": STEP, "other_step": "0"})


def _open_model(name: str) -> None:
    shelves.add_run(name)
    choose_model(name)


def _weights_name(run: Run, made: Mapping[str, Any]) -> str:
    """The run, and the step of its weights where it is not finished."""
    step = made.get("steps")
    is_finished = made.get("is_finished") is True or not is_step(step)
    return run.title if is_finished else f"step {step:,} of {run.title}"


def _first_active(runs: list[Run]) -> Run | None:
    for run in runs[:10]:
        try:
            if status_of(run).is_active:
                return run
        except RunError:
            continue
    return None
