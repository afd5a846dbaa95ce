"""The training runs of all readers, shown as numbers; each can be stopped and deleted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from explorer.app.notes import draw_notes, keep_note
from explorer.app.session import session
from explorer.catalog.run_index import RunFolder, index_of
from explorer.runs.cluster import cluster
from explorer.runs.quotas import sizes_of
from explorer.runs.run import Run, RunError, run_named
from explorer.runs.spec import FAILED, Status
from explorer.system.data_folders import runs_root
from explorer.text.number_format import megabytes
from explorer.views.administration.command_table import choose_in_table, counted, draw_deletion
from explorer.views.administration.reader_numbers import Numbers
from explorer.views.training.run_words import STATE_WORDS, duration, status_of

MOST_LISTED = 1_000
"""The newest; each is a file to read."""
NOTHING = "No runs."
ALL, ACTIVE = "All", "Training or waiting"
STOPPING = "stopping"


def draw_runs(numbers: Numbers) -> None:
    """A table with a box for each run, and what can be done with those that are chosen."""
    root = Path(runs_root())
    listing = index_of(root).now()
    sizes = sizes_of(root, listing)
    readers = {run.owner for run in listing.everybodys}
    listed = listing.everybodys[:MOST_LISTED]
    statuses = [status_now(Run(root / run.name)) for run in listed]
    active = sum(status.is_active for status in statuses)
    st.markdown(
        f"**Training runs** · {counted(len(listing.everybodys), 'run')} by "
        f"{counted(len(readers), 'reader')}, {megabytes(sum(sizes.values()))} on disk · "
        f"{active:,} training or waiting"
    )
    which = st.segmented_control(
        "Runs",
        (ACTIVE, ALL),
        default=ACTIVE,
        required=True,
        key="admin_which",
        label_visibility="collapsed",
    )
    shown = {
        run.name: _row(run, status, numbers, sizes[run.name])
        for run, status in zip(listed, statuses, strict=True)
        if which == ALL or status.is_active
    }
    if not shown:
        st.text(NOTHING)
    else:
        _draw_table(shown)
    draw_notes("administration")


def _draw_table(shown: dict[str, dict[str, object]]) -> None:
    chosen = choose_in_table(
        "everybodys_runs",
        list(shown),
        list(shown.values()),
        **{name: st.column_config.NumberColumn(format="localized") for name in ("step", "of")},
    )
    with st.container(horizontal=True):
        st.button(
            f"Stop {counted(len(chosen), 'run')}" if chosen else "Stop",
            key="admin_stop",
            disabled=not chosen,
            on_click=stop_runs,
            args=(chosen,),
        )
        running = " Running ones are stopped first."
        draw_deletion("admin_delete_runs", "run", chosen, delete_runs, running)


def _row(run: RunFolder, status: Status, numbers: Numbers, size: int) -> dict[str, object]:
    """No text and no name that a reader gave."""
    return {
        "run": Run(run.name).title,
        "whose": numbers.get(run.owner, ""),
        "state": _state(run, status),
        "step": status.step,
        "of": status.steps,
        "trained for": duration(status.seconds),
        "size": megabytes(size),
    }


def _state(run: RunFolder, status: Status) -> str:
    """Its process takes a moment to obey."""
    if status.is_active and Run(Path(runs_root()) / run.name).commanded() == "stop":
        return STOPPING
    return STATE_WORDS.get(status.state, status.state).partition(":")[0]


def status_now(run: Run) -> Status:
    """Of a damaged one nothing is known but that it is there."""
    try:
        return status_of(run)
    except RunError:
        return Status(state=FAILED)


def stop_runs(names: list[str]) -> None:
    """Tell the workers to stop these; for a callback."""
    _each(names, cluster().stop)


def delete_runs(names: list[str]) -> None:
    """Delete these for good; for a callback."""
    _each(names, cluster().delete)


def _each(names: list[str], do: Callable[[Run], None]) -> None:
    if not session().is_admin:
        return
    for name in names:
        try:
            do(run_named(runs_root(), name))
        except RunError as error:  # it was deleted meanwhile
            keep_note("administration", str(error))
