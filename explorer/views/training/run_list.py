"""The list of runs; the one on screen is in the address as `run`, and is found in its folder."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from explorer.app import reader_models, streamlit_patches, url, widget_state
from explorer.app.choosing import choose_model, draw_page_link, switch_page
from explorer.app.messages import say
from explorer.app.notes import keep_note
from explorer.app.reader_runs import found_run, listed_runs, may_change, own_runs
from explorer.app.session import session
from explorer.runs.cluster import cluster
from explorer.runs.run import Run
from explorer.runs.spec import RunError, is_step
from explorer.system import limits
from explorer.views.compare.sides import STEP
from explorer.views.training.run_words import duration, status_of
from models.loading.checkpoint import CheckpointError, peek

FORWARD = ":material/arrow_forward:"


def draw_run_links(run: Run) -> None:
    """Its model on Attention maps, its training as a film and from inside, and its parent."""
    _draw_open_button(run)
    _draw_watch_button(run)
    draw_page_link("inside_training", "Look inside its training", run=run.name)
    _draw_compare_button(run)


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
        icon=FORWARD,
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
    label, args = "Watch its training", (run.name,)
    if st.button(label, key="watch_run", icon=FORWARD, on_click=_open_model, args=args):
        switch_page(page)


def _draw_compare_button(run: Run) -> None:
    """What a fine-tuned model started from, its step 0, with its newest snapshot."""
    page, snapshots = "compare", run.snapshots()
    if page not in session().pages or not snapshots:
        return
    if not run.is_readable() or not run.spec.parent:
        return
    label, args = "Compare with what it started from", (run.name,)
    if st.button(label, key="compare_run", icon=FORWARD, on_click=_open_beginning, args=args):
        newest = str(snapshots[-1][0])
        switch_page(page, training_step="0", **{"with": STEP, "other_step": newest})


def _open_model(name: str) -> None:
    reader_models.add_run(name)
    choose_model(name)


def _open_beginning(name: str) -> None:
    """Its step 0 is the first of the two, so a difference is what the training has changed."""
    _open_model(name)
    widget_state.put("training_step", 0)


def _weights_name(run: Run, made: Mapping[str, Any]) -> str:
    """The run, and the step of its weights where it is not finished."""
    step = made.get("steps")
    is_finished = made.get("is_finished") is True or not is_step(step)
    return run.title if is_finished else f"step {step:,} of {run.title}"


DELETE_WIDTH = 260
"""Pixels, between the button and the right edge of the page."""


def run_on_screen() -> Run | None:
    """The run that `choose_run` will show, for what is drawn before it; nothing is drawn."""
    name = url.asked("run") if _is_asked() else widget_state.get("run")
    if not name:
        return _first_active(own_runs())
    try:
        return found_run(name)
    except RunError:
        return None


def choose_run() -> Run | None:
    """The run on screen, from the reader's runs; at first the one of theirs that trains."""
    runs = {run.name: run for run in listed_runs()}
    name = _settle_run(runs)
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
    if picked != name:
        _name_in_address(picked)
    return runs.get(str(picked))


def _is_asked() -> bool:
    """Whether the address is asked: where nobody has chosen, and after the browser's Back."""
    return not widget_state.has("run") or streamlit_patches.came_back()


def _settle_run(runs: dict[str, Run]) -> str | None:
    """The name of the run on screen, before the list is drawn: in the address, and in `runs`.

    The list shows what a run is called, an address what finds it. So the two are not bound.
    """
    is_asked = _is_asked()
    name = (url.asked("run") if is_asked else widget_state.get("run")) or None
    if name is not None and name not in runs:
        try:
            runs[name] = found_run(name)
        except RunError as error:
            say(str(error))
            name = None
    if name is None and (active := _first_active(own_runs())):
        name = active.name
    if widget_state.get("run") != name or is_asked:
        widget_state.put("run", name)
    _name_in_address(name)
    return name


def _name_in_address(name: str | None) -> None:
    if name is None:
        url.remove("run")
    else:
        url.write("run", name)


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
    try:
        cluster().delete(run)
        widget_state.put("run", None)
    except RunError as error:
        keep_note("run", str(error))


def _first_active(runs: list[Run]) -> Run | None:
    for run in runs[:10]:
        try:
            if status_of(run).is_active:
                return run
        except RunError:
            continue
    return None
