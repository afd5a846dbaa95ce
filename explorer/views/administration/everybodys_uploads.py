"""The uploads of all readers, shown as numbers; each can be deleted."""

from __future__ import annotations

import time

import streamlit as st

from explorer.app.received_uploads import RECEIVED
from explorer.app.session import session
from explorer.catalog import uploads
from explorer.system.data_folders import uploads_root
from explorer.text.number_format import megabytes
from explorer.views.administration.command_table import choose_in_table, counted, draw_deletion
from explorer.views.administration.reader_numbers import Numbers
from explorer.views.training.run_words import duration


def draw_uploads(numbers: Numbers) -> None:
    """A table with a box for each, without its name."""
    stored = uploads.stored(uploads_root())[::-1]
    size = sum(each.bytes for each in stored)
    st.markdown(
        f"**Uploads** · {counted(len(stored), 'model')}, {megabytes(size)} on disk · "
        f"{megabytes(RECEIVED.bytes)} in memory, not opened yet"
    )
    if not stored:
        st.text("No uploads.")
        return
    now = time.time()
    rows = [
        {
            "whose": numbers.get(each.whose.owner or None, ""),
            "size": megabytes(each.bytes),
            "last used": f"{duration(max(0, now - each.used / 1e9))} ago",
        }
        for each in stored
    ]
    names = [each.folder.name for each in stored]
    chosen = choose_in_table("everybodys_uploads", names, rows)
    draw_deletion("admin_delete_uploads", "upload", chosen, delete_uploads)


def delete_uploads(names: list[str]) -> None:
    """Delete these for good; for a callback."""
    for name in names if session().is_admin else ():
        uploads.delete(uploads_root(), name)
