"""Where the lines come from that are searched: a text of the app, one that is pasted, or a file."""

from dataclasses import dataclass

import streamlit as st

from explorer.analysis.circuits.exciting_lines import built_in_lines, built_in_texts
from explorer.app.controls import one_of
from explorer.app.session import state_of
from explorer.catalog.opened_model import Opened
from explorer.system import limits
from explorer.text.checked_text import TextError, decoded, lines_in

PASTED, FILE = "Pasted text", "Text file"
MOST_PASTED_LINES = 50_000
MB = 1_000_000

BYTES_OF_CHARACTER = 4
"""At most, in UTF-8: a file that cannot fit is refused."""


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
            max_chars=MOST_PASTED_LINES,
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
        content, characters = (
            upload.getvalue(),
            limits.LINES.most * (limits.LINE_CHARACTERS.most + 1),
        )
        if len(content) > BYTES_OF_CHARACTER * characters:
            raise TextError(
                f"The file has {len(content):,} bytes; at most {characters:,} characters are read, "
                "so upload a part of it."
            )
        kept.text = decoded(content)
    return kept.text or ""


def _forget_file() -> None:
    """For the callback: the file was removed, or another was uploaded."""
    state_of(UploadedLines).text = None
