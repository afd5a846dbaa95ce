"""Presenter mode, as far as the server has to do with it: its button, and what the notes say.

All else is in the browser, so that it begins at once: `explorer/components/presenter`.
"""

from __future__ import annotations

import streamlit as st

BUTTON = "present_button"


def draw_present_button() -> None:
    """The browser sees the click, as it sees the key F."""
    st.button(
        "Present",
        key=BUTTON,
        icon=":material/present_to_all:",
        help="Large type and nothing but the figures: key F. The key ? lists all keys.",
    )


def told() -> list[str]:
    """Lesson, place in it, title of the step, its notes, title of the next; empty if none is open.

    The second window shows them.
    """
    return [""] * 5
