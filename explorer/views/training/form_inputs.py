"""The inputs of the form: one for each setting, two numbers or one choice in a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from explorer.app.controls import follow
from explorer.runs.settings import Setting


class Inputs:
    """Small inputs; every task keeps its own values.

    What nobody chose follows what it is at first: the task's own, or that of the run on screen.
    `changed` is called with the name of a setting after the reader has changed it.
    """

    def __init__(self, task: str, changed: Callable[[str], None]) -> None:
        self._task, self._changed = task, changed
        self._columns: Sequence[Any] = ()
        self._drawn = 0

    def draw(self, setting: Setting, value: Any) -> Any:
        """The value chosen for this setting, at first `value`."""
        key = self.key(setting.name)
        how: dict[str, Any] = {
            "key": key,
            "help": setting.help or None,
            "on_change": self._changed,
            "args": (setting.name,),
            "persist_state": "session",
        }
        if setting.options:
            follow(key, value)
            self.new_row()  # half of one would cut its texts
            at_first = setting.options.index(value)
            return st.selectbox(setting.label, setting.options, index=at_first, **how)
        kind = float if setting.format else int
        follow(key, kind(value))
        return self._place().number_input(
            setting.label,
            min_value=kind(min(setting.low, value)),
            max_value=kind(max(setting.high, value)),
            value=kind(value),
            step=kind(setting.step),
            format=setting.format or None,
            **how,
        )

    def switch(self, label: str, name: str, value: bool, words: str) -> bool:
        """In a row of its own, and on two lines where that is narrow."""
        self.new_row()
        key = self.key(name)
        follow(key, value)
        return st.toggle(label, value, wrap=True, key=key, help=words, persist_state="session")

    def new_row(self) -> None:
        """What comes next begins a row."""
        self._drawn += self._drawn % 2

    def key(self, name: str) -> str:
        """That of the setting of this name."""
        return f"{self._task}_{name}"

    def _place(self) -> Any:
        if self._drawn % 2 == 0:
            self._columns = st.columns(2, vertical_alignment="bottom", gap="small")
        self._drawn += 1
        return self._columns[(self._drawn - 1) % 2]
