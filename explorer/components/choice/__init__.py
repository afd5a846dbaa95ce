"""What is chosen in a view, sent apart from its picture.

A picture of every head is large and does not change when another head is chosen.
Streamlit sends an unchanged message as a hash, but one changed byte sends all of it:
so the choice travels in a message of its own, and the browser hands it over.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import streamlit as st

from explorer.components.mounting import register

_MOUNT = register("choice", '<span class="choice" hidden></span>\n', shared=False)


@contextmanager
def chosen(key: str, choice: Sequence[int] | int | None) -> Iterator[None]:
    """Mount a view inside; it hears of `choice` under the name of its key."""
    with st.container(gap=None):
        yield
        picked = choice if choice is None or isinstance(choice, int) else list(choice)
        _MOUNT(key=f"{key}-choice", data=json.dumps({"name": key, "choice": picked}))
