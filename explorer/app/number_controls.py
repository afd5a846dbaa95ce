"""Numbers that a link repeats: what an address asks for in vain is said beside the control."""

from __future__ import annotations

from math import isinf
from typing import Any

import streamlit as st

from explorer.app.controls import asked_within, say_invalid


def slider(label: str, key: str, low: float, high: float, usual: float, **how: Any) -> float:
    _hear(label, key, low, high, usual)
    picked = st.slider(
        label, low, high, usual, key=key, bind="query-params", persist_state="session", **how
    )
    say_invalid(key, picked)
    return picked


def whole(label: str, key: str, low: int, high: int, usual: int, **how: Any) -> int:
    """A whole number to type."""
    _hear(label, key, low, high, usual)
    if _is_endless(st.query_params.get(key, "")):  # the widget would fail on it
        del st.query_params[key]
        st.rerun()
    how = {"min_value": low, "max_value": high, "value": usual, "step": 1, **how}
    picked = int(
        st.number_input(label, key=key, bind="query-params", persist_state="session", **how)
    )
    say_invalid(key, picked)
    return picked


def _hear(label: str, key: str, low: float, high: float, usual: float) -> None:
    if key not in st.session_state:  # the widget takes what is good from the address itself
        asked_within(label, key, low, high, usual)


def _is_endless(asked: str) -> bool:
    try:
        return isinf(float(asked))
    except ValueError:
        return False
