"""One of a few, kept in the address; what an address asks for in vain is said and replaced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from explorer import session

LONGEST = 30


def one_of(label: str, key: str, options: Sequence[str], default: str = "", **how: Any) -> str:
    """A choice that a link repeats; `as_list=True` draws a list to search in, not buttons.

    What is no longer among the options, such as a token of another sentence, is replaced
    by the default. What the address asks for in vain is said beside the choice until
    something else is chosen there.
    """
    default = default or options[0]
    asked, state, vain = st.query_params.get(key), st.session_state, f"_vain_{key}"
    if asked and asked not in options and not asked.isspace():
        state[vain] = default, f"“{label}” has no “{asked[:LONGEST]}” here; showing {default}."
    if state.get(key, default) not in options:
        state[key] = default
    how |= {"key": key, "bind": "query-params"}
    if how.pop("as_list", False):
        picked = st.selectbox(label, options, index=options.index(default), **how)
    else:
        picked = st.segmented_control(label, options, default=default, required=True, **how)
    picked = default if picked is None else str(picked)
    shown, sentence = state.get(vain, ("", ""))
    if sentence and picked == shown:
        session.say(sentence)
    else:
        state.pop(vain, None)
    return picked
