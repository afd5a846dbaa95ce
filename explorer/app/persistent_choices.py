"""Choices that stay chosen, and in the address, while their controls are not drawn.

A widget that is not drawn leaves the address, and drawing a dozen costs each run more than the
picture does. So these widgets are drawn only while their panel is open, and their values stay here.
"""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from explorer.app import address
from explorer.app.messages import CONTROL, drop_notes
from explorer.app.session import session

Text = str | list[str]
"""How a choice is written in the address; several values of one name are a list."""


_INSTANCES: "list[PersistentChoices]" = []


def follow_address() -> None:
    """After the browser's Back: read the choices of this page from the address again.

    The state that goes with them, and notes on invalid values of the earlier address, are dropped.
    """
    reader = session()
    drop_notes(CONTROL)
    for choices in _INSTANCES:
        if any(map(address.is_declared, choices.defaults)):
            reader.persistent.pop(choices.name, None)
        if choices.goes_with is not None:
            reader.states.pop(choices.goes_with, None)


class PersistentChoices:
    """Some choices of one page; the address holds those that differ from their defaults.

    `goes_with` is the class of a view's state that is dropped after the browser's Back.
    """

    def __init__(
        self, name: str, defaults: Mapping[str, Any], goes_with: type | None = None
    ) -> None:
        self.name = name
        self.defaults = defaults
        self.goes_with = goes_with
        _INSTANCES.append(self)

    @property
    def is_new(self) -> bool:
        """Whether the address is still to be read."""
        return self.name not in session().persistent

    def texts(self) -> dict[str, Text]:
        """The choices that differ from their defaults, at first those of the address."""
        persistent = session().persistent
        if self.name not in persistent:
            persistent[self.name] = {
                key: address.values_of(key) if isinstance(default, list) else address.value_of(key)
                for key, default in self.defaults.items()
                if address.is_declared(key) and address.is_named(key)
            }
        return persistent[self.name]

    def settle(self, values: Mapping[str, Any]) -> None:
        """Keep these values of the widgets, and write them into the address."""
        chosen = {
            key: as_text(values[key])
            for key, default in self.defaults.items()
            if values[key] != default
        }
        session().persistent[self.name] = chosen
        for key in filter(address.is_declared, self.defaults):
            if key in chosen:
                address.write(key, chosen[key])
            else:
                address.remove(key)

    def take(self, key: str) -> None:
        """For the callback of a widget that the reader has changed."""
        self._keep(key, st.session_state[key])

    def put(self, key: str, value: Any) -> None:
        """For a callback elsewhere: choose this value. The widget follows if it is drawn."""
        self._keep(key, value)
        if key in st.session_state:
            st.session_state[key] = value

    def reset(self) -> None:
        """For a callback: go back to the defaults."""
        for key, default in self.defaults.items():
            self.put(key, default)

    def _keep(self, key: str, value: Any) -> None:
        texts = self.texts()
        if value is None or value == self.defaults[key]:
            texts.pop(key, None)
        else:
            texts[key] = as_text(value)


def as_text(value: Any) -> Text:
    """The value as a bound widget would write it."""
    if isinstance(value, list):
        return [str(item) for item in value]
    return str(value).lower() if isinstance(value, bool) else str(value)
