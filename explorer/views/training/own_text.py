"""The reader's own text or table, from which a task is made: pasted, or a file."""

from __future__ import annotations

import streamlit as st

from explorer.app import limits
from explorer.app.messages import say
from explorer.tasks import Given

BYTES_OF_CHARACTER = 4
"""At most, in UTF-8: a file that cannot fit is refused unread."""
MOST_PASTED = 200_000
"""A pasted text is sent with every click on the page; a file is sent once."""


def draw_text(given: Given) -> str | None:
    """The text of the task: pasted or uploaded, and checked again here."""
    kind = "csv" if given.wants == "table" else "txt"
    pasted = st.text_area(
        "Text" if kind == "txt" else "Table with the columns text and label",
        key=f"pasted_{given.name}",
        height=140,
        persist_state="session",
    )
    st.button("Use this text" if kind == "txt" else "Use this table", key=f"use_{given.name}")
    largest = BYTES_OF_CHARACTER * limits.CORPUS_CHARACTERS.most
    file = st.file_uploader(
        f"Or a .{kind} file",
        type=[kind],
        key=f"file_{given.name}",
        max_upload_size=largest // 1_000_000 or 1,
    )
    if file is None and len(pasted) > MOST_PASTED:
        say(f"Pasted text can have at most {MOST_PASTED:,} characters: upload a file instead.")
        return None
    if file is None:
        return pasted or None
    if file.size > largest:
        say(f"The file is too long; {limits.CORPUS_CHARACTERS.most:,} characters at most.")
        return None
    try:
        return file.getvalue().decode("utf-8-sig")
    except UnicodeDecodeError:
        say("The file is not UTF-8 text; save it as UTF-8 and upload it again.")
        return None
