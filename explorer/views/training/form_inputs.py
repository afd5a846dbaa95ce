"""The inputs of the form: one for each setting, two numbers or one choice in a row."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from explorer.app import widget_state
from explorer.app.controls import follow
from explorer.app.reader_runs import may_change
from explorer.runs.run import Run
from explorer.runs.settings import Setting
from explorer.runs.spec import HOT_VALUES
from explorer.views.training.run_words import errors_noted

HOT, COLD = ":material/bolt:", ":material/restart_alt:"
APPLIES_NOW = "Applies to the run on screen after its next step."
NEEDS_RESTART = "Needs a restart: applies to the next run."


class SettingInputs:
    """Small inputs; every task keeps its own values.

    What nobody chose follows what it is at first: the task's own, or that of the run on screen.
    `live` is that run where it can go on: each input says whether it applies to it now, and the
    run is told of what does.
    """

    def __init__(self, task: str, live: Run | None) -> None:
        self._task, self._live = task, live
        self._columns: Sequence[Any] = ()
        self._drawn = 0

    @property
    def is_live(self) -> bool:
        """Whether there is a run that takes on what is chosen."""
        return self._live is not None

    def draw(self, setting: Setting, value: Any) -> Any:
        """The value chosen for this setting, at first `value`."""
        key = self.key(setting.name)
        is_hot = setting.field in HOT_VALUES
        label, words = setting.label, [setting.help]
        if self._live:
            label = f"{HOT if is_hot else COLD} {label}"
            words.append(APPLIES_NOW if is_hot else NEEDS_RESTART)
        how: dict[str, Any] = {
            "key": key,
            "help": " ".join(filter(None, words)) or None,
            "persist_state": "session",
        }
        if self._live and is_hot:
            how |= {"on_change": change_now, "args": (self._live, setting.field, key)}
        if setting.options:
            follow(key, value)
            self.new_row()  # half of one would cut its texts
            return st.selectbox(label, setting.options, setting.options.index(value), **how)
        kind = float if setting.format else int
        follow(key, kind(value))
        return self._place().number_input(
            label,
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
        if self._live:
            label, words = f"{COLD} {label}", f"{words} {NEEDS_RESTART}"
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


def change_now(run: Run, field: str, key: str) -> None:
    """Have the run take on what was just chosen; for the callback of an input."""
    if not may_change(run):
        return
    with errors_noted("run"):
        run.change(**{field: widget_state.get(key)})
