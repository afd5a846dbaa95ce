"""Panels that a link opens: expanders and popovers whose contents are sent once they are open.

Their key is their parameter in the address, which has it only while the panel is open.
"""

from typing import Any

import streamlit as st

from explorer.app import streamlit_patches, url
from explorer.app.controls import note_invalid, say_invalid

IS_OPEN = "true"


def expander(key: str, **how: Any) -> Any:
    """Closed at first; `.open` says whether it is open."""
    _check(key)
    panel = st.expander(**(url.bound(key) | how))
    say_invalid(key, panel.open)
    return panel


def popover(key: str, icon: str, **how: Any) -> Any:
    """The same behind a button; Streamlit binds none to the address."""
    _check(key)
    if key not in st.session_state or streamlit_patches.came_back():
        st.session_state[key] = url.asked(key).lower() == IS_OPEN
    panel = st.popover(icon=icon, on_change="rerun", **url.words_of(key), **how)
    if panel.open:
        url.write(key, IS_OPEN)
    else:
        url.remove(key)
    say_invalid(key, panel.open)
    return panel


def _check(key: str) -> None:
    asked = url.asked(key)
    if key not in st.session_state and asked.lower() not in ("", IS_OPEN, "false"):
        sentence = url.invalid_option(url.row_of(key).label, asked, "it closed")
        note_invalid(key, False, sentence)
