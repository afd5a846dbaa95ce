"""The activity of this server process: its figures, and its active page runs, to stop them."""

import shutil
import time
from collections.abc import Callable, Iterable
from typing import Any

import streamlit as st
from prometheus_client import REGISTRY

from explorer.app import admin_token, widget_state
from explorer.app.messages import keep_note, take_notes
from explorer.app.reader import network
from explorer.app.session import session
from explorer.app.throttle import at_work
from explorer.catalog import uploads
from explorer.catalog.run_index import HOST, index_of
from explorer.system.data_folders import runs_root, uploads_root
from explorer.system.limits import GB, MB
from explorer.views.shared.tables import table
from explorer.views.training.run_words import duration

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
