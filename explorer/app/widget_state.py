"""The values of widgets by their keys; views read and set them here and nowhere else.

Set a value before its widget is drawn in this run, or in a callback.
"""

from typing import Any, TypeVar, overload

import streamlit as st

Value = TypeVar("Value")


@overload
def get(key: str) -> Any: ...
@overload
def get(key: str, usual: Value) -> Value: ...
def get(key: str, usual: object = None) -> object:
    """The value of this widget; `usual` if it has none."""
    return st.session_state.get(key, usual)


def has(key: str) -> bool:
    """Whether this widget has a value."""
    return key in st.session_state


def put(key: str, value: object) -> None:
    """Set the value of this widget."""
    st.session_state[key] = value


def forget(key: str) -> None:
    """Remove the value, so that the widget has its default when it is drawn next."""
    st.session_state.pop(key, None)
