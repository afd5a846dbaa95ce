"""Numbers that a link repeats: what an address asks for in vain is said beside the control."""

from __future__ import annotations

from typing import Any

import streamlit as st

from explorer import session


def slider(label: str, key: str, low: float, high: float, usual: float, **how: Any) -> float:
    _note(label, key, low, high, usual)
    picked = st.slider(
        label, low, high, usual, key=key, bind="query-params", persist_state="session", **how
    )
    _say(key, picked)
    return picked


def whole(label: str, key: str, low: int, high: int, usual: int, **how: Any) -> int:
    """A whole number to type."""
    _note(label, key, low, high, usual)
    how = {"min_value": low, "max_value": high, "value": usual, "step": 1, **how}
    picked = int(
        st.number_input(label, key=key, bind="query-params", persist_state="session", **how)
    )
    _say(key, picked)
    return picked


def _note(label: str, key: str, low: float, high: float, usual: float) -> None:
    asked, state = st.query_params.get(key), st.session_state
    if asked is None or key in state:
        return
    try:
        is_there = low <= type(usual)(asked) <= high
    except ValueError:
        is_there = False
    if not is_there:
        sentence = (
            f"“{label}” goes from {low:,g} to {high:,g}, not “{asked[:20]}”; it is {usual:,g}."
        )
        state[f"_vain_{key}"] = usual, sentence


def _say(key: str, picked: float) -> None:
    """Until something else is chosen there."""
    shown, sentence = st.session_state.get(f"_vain_{key}", (picked, ""))
    if shown != picked:
        del st.session_state[f"_vain_{key}"]
    elif sentence:
        session.say(sentence)
