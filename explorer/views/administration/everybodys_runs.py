"""The training runs of all readers, shown as numbers; each can be stopped and deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from zlib import crc32

import streamlit as st

from explorer.app.controls import chosen_rows
from explorer.app.messages import say
from explorer.app.session import session
from explorer.catalog.folders import runs_root
from explorer.catalog.run_index import HOST, RunFolder, index_of
from explorer.runs.cluster import cluster
from explorer.runs.run import Run, RunError, run_named
from explorer.runs.spec import FAILED, Status
from explorer.views.training.run_words import STATE_WORDS, duration, status_of

MOST_LISTED = 1_000
"""The newest; each is a file to read."""
NOTHING = "No runs."
ALL, ACTIVE = "All", "Training or waiting"
HOST_WORDS, NOBODY_WORDS = "whoever runs the server", "nobody"


def draw_runs() -> None:
    """A table with a box for each run, and what can be done with those that are chosen."""
    listing = index_of(runs_root()).now()
    numbers = reader_numbers(reversed(listing.everybodys))
    listed = listing.everybodys[:MOST_LISTED]
    statuses = [status_now(Run(Path(runs_root()) / run.name)) for run in listed]
    active = sum(status.is_active for status in statuses)
    st.markdown(
        f"**Training runs** · {len(listing.everybodys):,} in all, readers: {len(numbers):,} · "
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
    shown = [
        (run, status)
        for run, status in zip(listed, statuses, strict=True)
        if which == ALL or status.is_active
    ]
    if not shown:
        st.text(NOTHING)
    else:
        _draw_table(shown, numbers)
    if fault := session().admin_fault:
        session().admin_fault = ""
        say(fault)


def reader_numbers(oldest_first: Iterable[RunFolder]) -> dict[str | None, str]:
    """What each reader is called here: by whose oldest run is the oldest."""
    names: dict[str | None, str] = {}
    count = 0
    for run in oldest_first:
        if run.owner in names:
            continue
        if run.owner:
            count += 1
            names[run.owner] = f"reader {count}"
        else:
            names[run.owner] = HOST_WORDS if run.owner == HOST else NOBODY_WORDS
    return names


def _draw_table(shown: list[tuple[RunFolder, Status]], numbers: dict[str | None, str]) -> None:
    names = [run.name for run, _ in shown]
    # Another table has another key: what was chosen by its place would be another run.
    key = f"everybodys_runs_{crc32(' '.join(names).encode())}"
    table = st.dataframe(
        [_row(run, status, numbers) for run, status in shown],
        key=key,
        on_select="rerun",
        selection_mode="multi-row",
        hide_index=True,
        width="stretch",
        height=min(422, 37 + 35 * len(shown)),
        column_config={
            name: st.column_config.NumberColumn(format="localized") for name in ("step", "of")
        },
    )
    chosen = [names[row] for row in chosen_rows(table, len(names))]
    count = f"{len(chosen):,} run{'' if len(chosen) == 1 else 's'}"
    with st.container(horizontal=True):
        st.button("Refresh", key="admin_refresh")
        st.button(
            f"Stop {count}" if chosen else "Stop",
            key="admin_stop",
            disabled=not chosen,
            on_click=stop_runs,
            args=(chosen,),
        )
        with st.popover(
            "Delete", icon=":material/delete:", key="admin_delete", disabled=not chosen
        ):
            st.markdown(f"This deletes **{count}** for good. Running ones are stopped first.")
            st.button(
                f"Delete {count}",
                key="admin_delete_runs",
                type="primary",
                on_click=delete_runs,
                args=(chosen,),
            )


def _row(run: RunFolder, status: Status, numbers: dict[str | None, str]) -> dict[str, object]:
    """No text and no name that a reader gave."""
    return {
        "run": Run(run.name).title,
        "whose": numbers[run.owner],
        "state": STATE_WORDS.get(status.state, status.state).partition(":")[0],
        "step": status.step,
        "of": status.steps,
        "trained for": duration(status.seconds),
    }


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
            session().admin_fault = str(error)
