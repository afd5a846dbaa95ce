"""Choices that stay chosen, and in the address, while their controls are not drawn.

A widget that is not drawn leaves the address, and a dozen that are drawn cost each run more
than the picture does. So these are drawn only while their panel is open, and kept here.
"""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from explorer.app import address
from explorer.app.messages import CONTROL, drop_notes
from explorer.app.session import session

Text = str | list[str]
"""How a choice is written in the address; several values of one name are a list."""


_EVERY: "list[PersistentChoices]" = []


def follow_address() -> None:
    """After the browser's Back: what the page declares is read from the address again.

    So is what the bar and the text were when a stage or a branch was chosen last. Sentences about
    invalid values of the address before are dropped.
    """
    reader = session()
    drop_notes(CONTROL)
    for each in _EVERY:
        if any(map(address.is_declared, each.defaults)):
            reader.persistent.pop(each.name, None)
        if each.goes_with is not None:
            reader.states.pop(each.goes_with, None)


class PersistentChoices:
    """Some choices of one page, with their defaults; the address holds what differs from them.

    `goes_with` is the class of what a room keeps beside them, and forgets after the browser's Back.
    """

    def __init__(
        self, name: str, defaults: Mapping[str, Any], goes_with: type | None = None
    ) -> None:
        self.name = name
        self.defaults = defaults
        self.goes_with = goes_with
        _EVERY.append(self)

    @property
    def is_new(self) -> bool:
        """Whether the address is still to be read."""
        return self.name not in session().persistent

    def texts(self) -> dict[str, Text]:
        """What is chosen, or asked for by the address, where it differs from the default."""
        kept = session().persistent
        if self.name not in kept:
            kept[self.name] = {
                key: address.values_of(key) if isinstance(default, list) else address.value_of(key)
                for key, default in self.defaults.items()
                if address.is_declared(key) and address.is_named(key)
            }
        return kept[self.name]

    def settle(self, values: Mapping[str, Any]) -> None:
        """Keep these values of the widgets, and write them into the address."""
        chosen = {
            key: as_text(values[key])
            for key, default in self.defaults.items()
            if values[key] != default
        }
        session().persistent[self.name] = chosen
        for key in self.defaults:
            if key in chosen:
                address.write(key, chosen[key])
            elif address.is_declared(key):
                address.remove(key)

    def take(self, key: str) -> None:
        """For the callback of a widget that was changed."""
        self._keep(key, st.session_state[key])

    def put(self, key: str, value: Any) -> None:
        """Choose it from elsewhere; for a callback. Its widget follows where it is drawn."""
        self._keep(key, value)
        if key in st.session_state:
            st.session_state[key] = value

    def reset(self) -> None:
        """Back to the defaults; for a callback."""
        for key, default in self.defaults.items():
            self.put(key, default)

    def _keep(self, key: str, value: Any) -> None:
        kept = self.texts()
        if value is None or value == self.defaults[key]:
            kept.pop(key, None)
        else:
            kept[key] = as_text(value)


def as_text(value: Any) -> Text:
    """As a bound widget would write it."""
    if isinstance(value, list):
        return [str(each) for each in value]
    return str(value).lower() if isinstance(value, bool) else str(value)
