"""Choices that stay chosen, and in the address, while their controls are folded away.

A widget that is not drawn leaves the address, and a dozen that are drawn cost each run more
than the picture does. So these are drawn while somebody looks at them, and kept here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from explorer.app.session import session

Text = str | list[str]
"""How a choice stands in the address; several values of one name are a list."""


class Folded:
    """Some choices of one page; `untouched` are the values of their widgets at first."""

    def __init__(self, name: str, untouched: Mapping[str, Any]) -> None:
        self.name = name
        self.untouched = untouched

    def texts(self) -> dict[str, Text]:
        """What is chosen, or asked for by the address, where it differs from the first choice."""
        kept = session().persistent
        if self.name not in kept:
            asked = st.query_params
            kept[self.name] = {
                key: asked.get_all(key) if isinstance(first, list) else asked[key]
                for key, first in self.untouched.items()
                if key in asked
            }
        return kept[self.name]

    def settle(self, values: Mapping[str, Any]) -> None:
        """Keep these values of the widgets, and put them into the address."""
        chosen = {
            key: as_text(values[key])
            for key, first in self.untouched.items()
            if values[key] != first
        }
        session().persistent[self.name] = chosen
        for key in self.untouched:
            if key not in chosen:
                st.query_params.pop(key, None)
            elif st.query_params.get_all(key) != _as_list(chosen[key]):
                st.query_params[key] = chosen[key]

    def take(self, key: str) -> None:
        """For the callback of a widget that was changed."""
        self._keep(key, st.session_state[key])

    def put(self, key: str, value: Any) -> None:
        """Choose it from elsewhere; for a callback. Its widget follows where it is drawn."""
        self._keep(key, value)
        if key in st.session_state:
            st.session_state[key] = value

    def reset(self) -> None:
        """Everything as it was at first; for a callback."""
        for key, value in self.untouched.items():
            self.put(key, value)

    def _keep(self, key: str, value: Any) -> None:
        kept = self.texts()
        if value is None or value == self.untouched[key]:
            kept.pop(key, None)
        else:
            kept[key] = as_text(value)


def as_text(value: Any) -> Text:
    """As a bound widget would write it."""
    if isinstance(value, list):
        return [str(each) for each in value]
    return str(value).lower() if isinstance(value, bool) else str(value)


def _as_list(text: Text) -> list[str]:
    return text if isinstance(text, list) else [text]
