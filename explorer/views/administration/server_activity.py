"""What this server does and stores: its figures, page runs, training runs and uploads.

The operator can stop and delete them.
"""

import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import streamlit as st
from prometheus_client import REGISTRY

from explorer.app import admin_token, widget_state
from explorer.app.controls import chosen_rows
from explorer.app.messages import draw_notes, keep_note, take_notes
from explorer.app.reader import network
from explorer.app.received_uploads import RECEIVED
from explorer.app.session import session
from explorer.app.throttle import at_work
from explorer.catalog import uploads
from explorer.catalog.run_index import HOST, RunFolder, index_of
from explorer.runs.cluster import Queued, cluster, status_of
from explorer.runs.quotas import sizes_of
from explorer.runs.run import Run, run_named
from explorer.runs.spec import FAILED, RunError, Status
from explorer.system.data_folders import runs_root, uploads_root
from explorer.system.limits import GB, MB
from explorer.text.number_format import megabytes
from explorer.views.shared.tables import table
from explorer.views.training.run_words import STATE_WORDS, duration, errors_noted

CLOSED = f"This page is closed. To open it, set {admin_token.ADMIN_SETTING} and restart the server."
PROMPT = "This page is for the operator of the server. Type the token that it was started with."
NOT_ADMIN = "This is not the token of this server."
TOO_MANY = (
    f"Too many wrong tokens came from your network, so this one was not read. Try again in "
    f"{admin_token.WAIT} seconds."
)


def let_in_or_stop() -> None:
    """Ask for the token and end the page, unless this reader has typed it before."""
    if session().is_admin:
        return
    if not admin_token.is_set():
        st.text(CLOSED)
        st.stop()
    st.text(PROMPT)
    how: Any = {"type": "password", "autocomplete": "off", "width": 400}
    st.text_input("Token", key="admin_token", on_change=_take, **how)
    for sentence in take_notes("administration"):
        st.text(sentence)
    st.stop()


def _take() -> None:
    reader, token = session(), str(widget_state.get("admin_token"))
    widget_state.put("admin_token", "")
    try:
        reader.is_admin = admin_token.is_right(token, network())
        keep_note("administration", "" if reader.is_admin else NOT_ADMIN)
    except admin_token.TooManyTriesError:
        keep_note("administration", TOO_MANY)


OPERATOR, NOBODY = "operator", "nobody"
Numbers = dict[str | None, str]


def all_numbers() -> Numbers:
    """Numbers for all readers, by their oldest runs; then for those without runs."""
    runs = (run.owner for run in reversed(index_of(runs_root()).now().everybodys))
    stored = (upload.whose.owner or None for upload in uploads.list_uploads(uploads_root()))
    return numbered([*runs, *stored, *(run.owner for run in at_work())])


def numbered(owners: Iterable[str | None]) -> Numbers:
    """Numbers for these readers, in this order."""
    names: Numbers = {HOST: OPERATOR, None: NOBODY}
    for owner in owners:
        names.setdefault(owner, f"reader {len(names) - 1}")
    return names


def draw_figures() -> None:
    """Draw the figures of this process in a row; each of several replicas has its own."""
    with st.container(horizontal=True, gap="large"):
        for name, value in figures().items():
            st.metric(name, value, width="content")


def figures() -> dict[str, str]:
    """The figures of this process that its system reports."""
    values = {
        "Connected pages": _figure("explorer_readers", "{:,.0f}".format),
        "Memory": _figure("process_resident_memory_bytes", lambda size: f"{size / MB:,.0f} MB"),
        "Open files": _figure("process_open_fds", "{:,.0f}".format),
        "Running for": _figure("process_start_time_seconds", lambda at: duration(time.time() - at)),
        "Free disk": _free_disk(),
    }
    return {name: value for name, value in values.items() if value}


def _figure(name: str, words: Callable[[float], str]) -> str:
    value = REGISTRY.get_sample_value(name)
    return "" if value is None else words(value)


def _free_disk() -> str:
    try:
        return f"{shutil.disk_usage(runs_root()).free / GB:,.1f} GB"
    except OSError:
        return ""


def draw_pages(numbers: Numbers) -> None:
    """Draw the active page runs; one button stops all of them, since most end within a moment."""
    active = at_work()
    st.markdown(f"**Active page runs** · {len(active):,} running or queued")
    if not active:
        return
    rows = [
        {
            "owner": numbers.get(run.owner, ""),
            "page": run.page,
            "state": "queued" if run.waits else "running",
            "for": duration(time.monotonic() - run.began),
        }
        for run in active
    ]
    table(rows, key="active_pages", width="stretch")
    listed = [run.number for run in active]
    st.button("Stop all of these", key="admin_stop_pages", on_click=stop_pages, args=(listed,))


def stop_pages(numbers: list[int]) -> None:
    """In a callback: stop these page runs if they are still active."""
    if session().is_admin:
        for run in at_work():
            if run.number in numbers:
                run.stop()


MOST_LISTED = 1_000
"""The newest runs; the page reads a file for each."""
ALL, ACTIVE = "All", "Training or queued"
STOPPING = "stopping"


def draw_runs(numbers: Numbers) -> None:
    """Draw a table with a box for each run, and buttons for the selected runs."""
    root = Path(runs_root())
    listing = index_of(root).now()
    sizes = sizes_of(root, listing)
    readers = {run.owner for run in listing.everybodys}
    newest = listing.everybodys[:MOST_LISTED]
    queued = cache(cluster().queued)
    statuses = [status_now(Run(root / run.name), queued) for run in newest]
    active = sum(status.is_active for status in statuses)
    st.markdown(
        f"**Training runs** · {counted(len(listing.everybodys), 'run')} by "
        f"{counted(len(readers), 'reader')}, {megabytes(sum(sizes.values()))} on disk · "
        f"{active:,} training or queued"
    )
    which = st.segmented_control(
        "Runs",
        (ACTIVE, ALL),
        default=ACTIVE,
        required=True,
        key="admin_which",
        label_visibility="collapsed",
    )
    rows = {
        run.name: {  # without texts and names that readers gave
            "run": Run(run.name).title,
            "owner": numbers.get(run.owner, ""),
            "state": _state(run, status),
            "step": status.step,
            "of": status.steps,
            "trained for": duration(status.seconds),
            "size": megabytes(sizes[run.name]),
        }
        for run, status in zip(newest, statuses, strict=True)
        if which == ALL or status.is_active
    }
    if rows:
        _draw_run_table(rows)
    else:
        st.text("No runs.")
    draw_notes("administration")


def _draw_run_table(rows: dict[str, dict[str, object]]) -> None:
    numbers = dict.fromkeys(("step", "of"), "localized")
    chosen = choose_in_table("all_runs", list(rows), list(rows.values()), numbers)
    with st.container(horizontal=True):
        st.button(
            f"Stop {counted(len(chosen), 'run')}" if chosen else "Stop",
            key="admin_stop",
            disabled=not chosen,
            on_click=stop_runs,
            args=(chosen,),
        )
        active = " Active ones are stopped first."
        draw_deletion("admin_delete_runs", "run", chosen, delete_runs, active)


def _state(run: RunFolder, status: Status) -> str:
    """The run's state in words, or `STOPPING`, since a run takes a moment to stop."""
    if status.is_active and Run(Path(runs_root()) / run.name).last_command() == "stop":
        return STOPPING
    return STATE_WORDS.get(status.state, status.state).partition(":")[0]


def status_now(run: Run, queued: Queued) -> Status:
    """The run's status; a damaged run counts as failed."""
    try:
        return status_of(run, queued)
    except RunError:
        return Status(state=FAILED)


def stop_runs(names: list[str]) -> None:
    """In a callback: stop these runs."""
    _for_each_run(names, cluster().stop)


def delete_runs(names: list[str]) -> None:
    """In a callback: delete these runs permanently."""
    _for_each_run(names, cluster().delete)


def _for_each_run(names: list[str], do: Callable[[Run], None]) -> None:
    if not session().is_admin:
        return
    for name in names:
        with errors_noted("administration"):  # the run may have been deleted meanwhile
            do(run_named(runs_root(), name))


def draw_uploads(numbers: Numbers) -> None:
    """Draw a table with a box for each upload, without the names that readers gave."""
    stored = uploads.list_uploads(uploads_root())[::-1]
    st.markdown(
        f"**Uploads** · {counted(len(stored), 'model')}, "
        f"{megabytes(sum(upload.bytes for upload in stored))} on disk · "
        f"{megabytes(RECEIVED.bytes)} in memory, not opened yet"
    )
    if not stored:
        st.text("No uploads.")
        return
    now = time.time()
    rows = [
        {
            "owner": numbers.get(upload.whose.owner or None, ""),
            "size": megabytes(upload.bytes),
            "last used": f"{duration(max(0, now - upload.used / 1e9))} ago",
        }
        for upload in stored
    ]
    chosen = choose_in_table("all_uploads", [upload.folder.name for upload in stored], rows)
    draw_deletion("admin_delete_uploads", "upload", chosen, delete_uploads)


def delete_uploads(names: list[str]) -> None:
    """In a callback: delete these uploads permanently."""
    for name in names if session().is_admin else ():
        uploads.delete(uploads_root(), name)


def choose_in_table(
    key: str,
    names: Sequence[str],
    rows: Sequence[Mapping[str, object]],
    numbers: Mapping[str, str] | None = None,
) -> list[str]:
    """Draw the table and return the names of the selected rows.

    The key depends on the names, since a selection is by place and another table has other rows.
    """
    selection = table(
        rows,
        numbers=numbers,
        key=f"{key}_{crc32(' '.join(names).encode())}",
        on_select="rerun",
        selection_mode="multi-row",
        width="stretch",
    )
    return [names[row] for row in chosen_rows(selection, len(names))]


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def draw_deletion(
    key: str, noun: str, chosen: list[str], delete: Callable[[list[str]], None], more: str = ""
) -> None:
    """Draw a button that asks before it deletes."""
    count = counted(len(chosen), noun)
    with st.popover("Delete", icon=":material/delete:", key=f"{key}_popover", disabled=not chosen):
        st.markdown(f"This permanently deletes **{count}**.{more}")
        st.button(f"Delete {count}", key=key, type="primary", on_click=delete, args=(chosen,))
