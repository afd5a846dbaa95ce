"""The inputs of the training form: one for each setting, two numbers or one list in a row."""

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
    """Inputs of one task, which keeps its own values.

    A value that the reader did not choose follows its default: the task's, or that of the run on
    screen. `live` is that run if it can go on: each input says whether it applies now, and if so
    changes the run.
    """

    def __init__(self, task: str, live: Run | None) -> None:
        self._task, self._live = task, live
        self._columns: Sequence[Any] = ()
        self._drawn = 0

    @property
    def is_live(self) -> bool:
        """Whether there is a run that the inputs change."""
        return self._live is not None

    def draw(self, setting: Setting, value: Any) -> Any:
        """Draw the input of this setting, with the default `value`; return the chosen value."""
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
            self.new_row()  # half a row would cut the options' texts
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
        """Draw a switch in a row of its own, whose label may take two lines."""
        self.new_row()
        key = self.key(name)
        follow(key, value)
        if self._live:
            label, words = f"{COLD} {label}", f"{words} {NEEDS_RESTART}"
        return st.toggle(label, value, wrap=True, key=key, help=words, persist_state="session")

    def new_row(self) -> None:
        """Let the next input begin a row."""
        self._drawn += self._drawn % 2

    def key(self, name: str) -> str:
        """The widget key of the setting of this name."""
        return f"{self._task}_{name}"

    def _place(self) -> Any:
        if self._drawn % 2 == 0:
            self._columns = st.columns(2, vertical_alignment="bottom", gap="small")
        self._drawn += 1
        return self._columns[(self._drawn - 1) % 2]


def change_now(run: Run, field: str, key: str) -> None:
    """In an input's callback: apply the chosen value to the run."""
    if not may_change(run):
        return
    with errors_noted("run"):
        run.change(**{field: widget_state.get(key)})
