"""The list of runs; the one on screen is in the address as `run`, and is found in its folder."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import streamlit as st

from explorer.app import address, reader_models, streamlit_patches, widget_state
from explorer.app.choosing import choose_model, draw_page_link, switch_page
from explorer.app.messages import say
from explorer.app.reader_runs import find_run, listed_runs, may_change, own_runs
from explorer.app.session import session
from explorer.runs.cluster import cluster
from explorer.runs.run import Run
from explorer.runs.spec import RunError, is_step
from explorer.system import limits
from explorer.views.compare.sides import STEP
from explorer.views.training.run_words import duration, errors_noted, status_of
from models.loading.checkpoint import CheckpointError, peek

FORWARD = ":material/arrow_forward:"
DELETE_WIDTH = 260
"""Pixels, between the button and the right edge of the page."""
EMPTY: Mapping[str, str] = {}


def draw_run_links(run: Run) -> None:
    """Its model on Attention maps, its training as a film and from inside, and its parent."""
    pages, snapshots = session().pages, run.snapshots()
    if weights := _weights_name(run):
        label = f"Open {weights} on Attention maps"
        _draw_link(run, "attention", label, "open_run", type="primary")
    if "training_history" in pages and run.latest() is not None:
        _draw_link(run, "training_history", "Watch its training", "watch_run")
    draw_page_link("inside_training", "Look inside its training", run=run.name)
    if "compare" in pages and snapshots and run.is_readable() and run.spec.parent:
        # Step 0 is the first of the two, so a difference is what the training has changed.
        steps = {"training_step": "0", "with": STEP, "other_step": str(snapshots[-1][0])}
        _draw_link(run, "compare", "Compare with what it started from", "compare_run", steps)


def _draw_link(
    run: Run, page: str, label: str, key: str, address: Mapping[str, str] = EMPTY, **how: Any
) -> None:
    """A button that chooses the model of the run, at a step where the address has one."""
    args = run.name, address.get("training_step")
    chosen = st.button(label, key=key, icon=FORWARD, on_click=_open_model, args=args, **how)
    if chosen and page in session().pages:
        switch_page(page, **address)


def _open_model(name: str, step: str | None) -> None:
    reader_models.add_run(name)
    choose_model(name)
    if step is not None:
        widget_state.put("training_step", int(step))


def _weights_name(run: Run) -> str:
    """The run, and the step of its weights where it is not finished; empty before there are any."""
    folder = run.checkpoint()
    try:
        record = peek(folder)[1] if folder else None
    except (CheckpointError, OSError):
        record = None
    if record is None:
        return ""
    step = record.get("steps")
    is_finished = record.get("is_finished") is True or not is_step(step)
    return run.title if is_finished else f"step {step:,} of {run.title}"


def run_on_screen(says: Callable[[str], None] = lambda sentence: None) -> Run | None:
    """The run that `choose_run` shows: at first the reader's first that trains; nothing is drawn.

    The list shows what a run is called, an address what finds it. So the two are not bound.
    """
    name = address.value_of("run") if _is_asked() else widget_state.get("run")
    try:
        if name:
            return find_run(name)
    except RunError as error:
        says(str(error))
    return _first_active(own_runs())


def _is_asked() -> bool:
    """Whether the address is asked: where nobody has chosen, and after the browser's Back."""
    return not widget_state.has("run") or streamlit_patches.came_back()


def choose_run() -> Run | None:
    """The run on screen, from the reader's runs, and what the address names."""
    runs = {run.name: run for run in listed_runs()}
    run = run_on_screen(says=say)
    name = run.name if run else None
    if run is not None:
        runs.setdefault(run.name, run)
    if widget_state.get("run") != name or _is_asked():
        widget_state.put("run", name)
    labels = reader_models.labels(runs)
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
    if picked is None:
        address.remove("run")
    else:
        address.write("run", picked)
    return runs.get(str(picked))


def choose_run_next(run: Run) -> None:
    """Show this run; called before the list is drawn."""
    widget_state.put("run", run.name)


def draw_buttons(run: Run) -> None:
    """What can be done with the run as a whole: look at it on other pages, delete it."""
    with st.container(horizontal=True, vertical_alignment="center"):
        draw_run_links(run)
        draw_page_link("runs", "All runs")
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
    with errors_noted("run"):
        cluster().delete(run)
        widget_state.put("run", None)


def _first_active(runs: list[Run]) -> Run | None:
    for run in runs[:10]:
        with suppress(RunError):
            if status_of(run).is_active:
                return run
    return None
