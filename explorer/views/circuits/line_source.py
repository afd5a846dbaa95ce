"""Where the lines come from that are searched: a text of the app, one that is pasted, or a file."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from explorer.analysis.circuits.built_in_lines import built_in_lines, built_in_texts
from explorer.app.controls import one_of
from explorer.app.session import state_of
from explorer.catalog.opened_model import Opened
from explorer.system import limits
from explorer.system.limits import LINE_CHARACTERS, LINES
from explorer.text.checked_text import TextError, checked

BYTES_OF_CHARACTER = 4
"""At most, in UTF-8: a file that cannot fit is refused unread."""


def lines_in(text: str) -> tuple[str, ...]:
    """The different lines of a text, in their order, without empty ones. TextError says why not."""
    rows = [line.strip() for line in text.splitlines()]
    found = [*dict.fromkeys(row for row in rows if row)]
    if not found:
        raise TextError("There is no line to read yet: type or upload a text.")
    if not LINES.allows(len(found)):
        raise TextError(LINES.refusal(len(found)))
    longest = max(map(len, found))
    if not LINE_CHARACTERS.allows(longest):
        raise TextError(LINE_CHARACTERS.refusal(longest))
    return tuple(checked(line, LINE_CHARACTERS) for line in found)


def decoded(content: bytes) -> str:
    """The text of a file; TextError where it is too large or not in UTF-8."""
    most = LINES.most * (LINE_CHARACTERS.most + 1)
    if len(content) > BYTES_OF_CHARACTER * most:
        raise TextError(
            f"The file has {len(content):,} bytes; at most {most:,} characters are read, so upload "
            "a part of it."
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise TextError(
            "The file is not text in UTF-8; save it as plain text in UTF-8 and upload it again."
        ) from None


PASTED, FILE = "Pasted text", "Text file"
MOST_PASTED = 50_000
MB = 1_000_000


@dataclass
class UploadedLines:
    """The uploaded text whose lines are searched, which no address holds."""

    text: str | None = None


def choose_source(opened: Opened) -> str:
    """The name of the text."""
    return one_of("lines_from", (*built_in_texts(opened), PASTED, FILE))


def lines_of(opened: Opened, name: str) -> tuple[str, ...]:
    """Its lines; TextError says why there are none."""
    if is_built_in(name):
        return built_in_lines(opened, name)
    return lines_in(_pasted() if name == PASTED else _of_file())


def is_built_in(name: str) -> bool:
    """Whether this text comes with the app."""
    return name not in (PASTED, FILE)


def _pasted() -> str:
    return str(
        st.text_area(
            "Your text, line by line",
            key="evidence_text",
            max_chars=MOST_PASTED,
            placeholder="Type or paste lines; upload a longer text as a file",
            persist_state="session",
        )
        or ""
    )


def _of_file() -> str:
    """The text of a file; a link does not contain it, as it does not what is pasted."""
    st.caption(
        f"Plain text in UTF-8, at most {limits.LINES.most:,} lines of at most "
        f"{limits.LINE_CHARACTERS.most:,} characters. It is not kept, and a link does not "
        "contain it."
    )
    most = 4 * limits.LINES.most * limits.LINE_CHARACTERS.most
    upload = st.file_uploader(
        "Text file",
        key="evidence_file",
        max_upload_size=max(1, most // MB),
        on_change=_forget_file,
    )
    kept = state_of(UploadedLines)
    if upload is not None and kept.text is None:
        kept.text = decoded(upload.getvalue())
    return kept.text or ""


def _forget_file() -> None:
    """For the callback: the file was removed, or another was uploaded."""
    state_of(UploadedLines).text = None
