"""From a run to the pages that show it or its model."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from explorer.app import reader_models, widget_state
from explorer.app.choosing import choose_model, draw_page_link, switch_page
from explorer.app.session import session
from explorer.runs.run import Run
from explorer.runs.spec import is_step
from explorer.views.compare.sides import STEP
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
