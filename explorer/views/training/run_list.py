"""The list of runs; the one on screen is in the address as `run`, and is found in its folder."""

import streamlit as st

from explorer.app import reader_models, streamlit_patches, url, widget_state
from explorer.app.choosing import draw_page_link
from explorer.app.messages import keep_note, say
from explorer.app.reader_runs import found_run, listed_runs, may_change, own_runs
from explorer.runs.cluster import cluster
from explorer.runs.run import Run
from explorer.runs.spec import RunError
from explorer.system import limits
from explorer.views.training.run_links import draw_run_links
from explorer.views.training.run_words import duration, status_of

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
