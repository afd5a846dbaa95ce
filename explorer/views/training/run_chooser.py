"""The list of runs, and what the reader can do with the one on screen, the address's `run`."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import streamlit as st

from explorer.app import address, reader_models, streamlit_patches, widget_state
from explorer.app.choosing import choose_model, draw_page_link, switch_page
from explorer.app.messages import say
from explorer.app.reader_runs import find_run, listed_runs, may_change, own_runs
from explorer.app.session import session
from explorer.catalog import in_a_sentence
from explorer.runs.cluster import cluster, status_of
from explorer.runs.run import Run
from explorer.runs.spec import RunError, is_step
from explorer.system import limits
from explorer.views.compare.sides import STEP
from explorer.views.training.run_words import duration, errors_noted
from models.loading.checkpoint import CheckpointError, peek

FORWARD = ":material/arrow_forward:"
DELETE_WIDTH = 260
"""Pixels that fit between the button and the right edge of the page."""
EMPTY: Mapping[str, str] = {}


def draw_run_links(run: Run) -> None:
    """Draw links to pages about the run: its attention, its film, its inside, its comparison."""
    pages, snapshots = session().pages, run.snapshots()
    if weights := _weights_name(run):
        label = f"Open {weights} on Attention maps"
        _draw_link(run, "attention", label, "open_run", type="primary")
    if "training_history" in pages and run.latest() is not None:
        _draw_link(run, "training_history", "Watch its training", "watch_run")
    draw_page_link("inside_training", "Look inside its training", run=run.name)
    if "compare" in pages and snapshots and run.is_readable() and run.spec.parent:
        # Step 0 is the first side, so the difference is what the training changed.
        steps = {"training_step": "0", "with": STEP, "other_step": str(snapshots[-1][0])}
        _draw_link(run, "compare", "Compare with what it started from", "compare_run", steps)


def _draw_link(
    run: Run, page: str, label: str, key: str, address: Mapping[str, str] = EMPTY, **how: Any
) -> None:
    """Draw a button that opens the run's model, at the step in `address` if it has one."""
    args = run.name, address.get("training_step")
    chosen = st.button(label, key=key, icon=FORWARD, on_click=open_run_model, args=args, **how)
    if chosen and page in session().pages:
        switch_page(page, **address)


def open_run_model(name: str, step: str | int | None) -> None:
    """In a callback: choose the model of this run, at this step if it has one."""
    reader_models.add_run(name)
    choose_model(name)
    if step is not None:
        widget_state.put("training_step", int(step))


def _weights_name(run: Run) -> str:
    """The run's name, with the step of its weights until it is finished; empty without weights.

    Weights that cannot be read are said on the page.
    """
    folder = run.checkpoint()
    try:
        record = peek(folder)[1] if folder else None
    except (CheckpointError, OSError) as error:
        why = in_a_sentence(error)
        st.text(f"The saved model of {run.title} cannot be read: {why} Start the run again.")
        record = None
    if record is None:
        return ""
    step = record.get("steps")
    is_finished = record.get("is_finished") is True or not is_step(step)
    return run.title if is_finished else f"step {step:,} of {run.title}"


def run_on_screen(report: Callable[[str], None] = lambda sentence: None) -> Run | None:
    """The run that `choose_run` shows; its default is the reader's newest run that trains.

    The list has titles and the address names of folders, so the widget is not bound to it.
    """
    name = address.value_of("run") if _address_decides() else widget_state.get("run")
    try:
        if name:
            return find_run(name)
    except RunError as error:
        report(str(error))
    for run in own_runs()[:10]:
        with suppress(RunError):
            if status_of(run).is_active:
                return run
    return None


def _address_decides() -> bool:
    """Whether the address decides: before the reader chooses, and after the browser's Back."""
    return not widget_state.has("run") or streamlit_patches.came_back()


def choose_run() -> Run | None:
    """Draw the list of the reader's runs and the one that the address names; return the choice."""
    runs = {run.name: run for run in listed_runs()}
    run = run_on_screen(say)
    name = run.name if run else None
    if run is not None:
        runs.setdefault(run.name, run)
    if widget_state.get("run") != name or _address_decides():
        widget_state.put("run", name)
    picked = st.selectbox(
        "Run",
        list(runs),
        index=None,
        format_func=reader_models.labels(runs).__getitem__,
        placeholder="Choose an earlier run" if runs else "No run yet",
        disabled=not runs,
        key="run",
        persist_state="session",
        label_visibility="collapsed",
    )
    if picked is None:
        address.remove("run")
    else:
        address.write("run", picked)
    return runs.get(str(picked))


def draw_buttons(run: Run) -> None:
    """Draw the links to other pages about the run, and the button that asks before it deletes."""
    with st.container(horizontal=True, vertical_alignment="center"):
        draw_run_links(run)
        draw_page_link("runs", "All runs")
        if not may_change(run):
            return
        popover = st.popover("Delete", icon=":material/delete:", key="delete")
        with popover, st.container(width=DELETE_WIDTH):  # a wider one would hang over the sidebar
            st.markdown(
                f"This deletes **{run.title}**: its metrics, its weights, and the text it was "
                "trained on. If it is training, it is stopped first. The page Runs can bring it "
                f"back for {duration(limits.UNDO_SECONDS.most)}, unless another of your runs needs "
                "its space."
            )
            label = f"Delete {run.title}"
            st.button(label, key="delete_run", type="primary", on_click=_delete, args=(run,))


def _delete(run: Run) -> None:
    if not may_change(run):
        return
    with errors_noted("run"):
        cluster().delete(run)
        widget_state.put("run", None)
