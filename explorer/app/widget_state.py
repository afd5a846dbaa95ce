"""What the widgets hold, by their keys; views read it and choose it here and nowhere else.

A widget takes what was put for it as long as it is not drawn in this run: in a callback, or before.
"""

from typing import Any, TypeVar, overload

import streamlit as st

Value = TypeVar("Value")


@overload
def get(key: str) -> Any: ...
@overload
def get(key: str, usual: Value) -> Value: ...
def get(key: str, usual: object = None) -> object:
    """What the widget with this key holds; `usual` where there is none."""
    return st.session_state.get(key, usual)


def has(key: str) -> bool:
    """Whether there is such a widget, or something was put for it."""
    return key in st.session_state


def put(key: str, value: object) -> None:
    """Have the widget hold this."""
    st.session_state[key] = value


def forget(key: str) -> None:
    """Have the widget, where it is drawn next, hold what it holds at first."""
    st.session_state.pop(key, None)
