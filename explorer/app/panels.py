"""Panels that a link opens: expanders and popovers whose contents are sent once they are open.

Their key is their parameter in the address, which has it only while the panel is open.
"""

from __future__ import annotations

from typing import Any

import streamlit as st

from explorer.app import streamlit_patches, url
from explorer.app.controls import note_invalid, say_invalid

OPEN = "true"


def expander(label: str, key: str) -> Any:
    """Closed at first; `.open` says whether it is open."""
    _check(label, key)
    panel = st.expander(label, **url.bound(key, label))
    say_invalid(key, panel.open)
    return panel


def popover(label: str, key: str, icon: str, **how: Any) -> Any:
    """The same behind a button; Streamlit binds none to the address."""
    _check(label, key)
    if key not in st.session_state or streamlit_patches.came_back():
        st.session_state[key] = url.asked(key).lower() == OPEN
    url.call(key, label)
    panel = st.popover(label, icon=icon, key=key, on_change="rerun", **how)
    if panel.open:
        url.write(key, OPEN)
    else:
        url.remove(key)
    say_invalid(key, panel.open)
    return panel


def _check(label: str, key: str) -> None:
    asked = url.asked(key)
    if key not in st.session_state and asked.lower() not in ("", OPEN, "false"):
        note_invalid(key, False, url.invalid_option(label, asked, "it closed"))
