"""The inputs of the training form: one for each setting, two numbers or one list in a row.

The address has the settings that differ from their defaults, by their names in the one table of
settings: `settings=steps~77~lr~0.01`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import streamlit as st

from explorer.app import address, streamlit_patches, widget_state
from explorer.app.controls import follow, say_invalid
from explorer.app.links import quoted_names
from explorer.app.messages import CONTROL, keep_note
from explorer.app.persistent_choices import as_text
from explorer.app.reader_runs import may_change
from explorer.app.session import session, state_of
from explorer.runs.run import Run
from explorer.runs.settings import Setting
from explorer.runs.spec import HOT_VALUES
from explorer.views.training.run_words import errors_noted

HOT, COLD = ":material/bolt:", ":material/restart_alt:"
APPLIES_NOW = "Applies to the run on screen after its next step."
NEEDS_RESTART = "Needs a restart: applies to the next run."
SEPARATOR, OF_LIST = "~", "+"
"""Between names and values in the address, and between the values of a list."""


@dataclass
class LinkedSettings:
    """The settings in the address: those to take from it, and those that the form writes there."""

    requested: dict[str, str] | None = None
    """By name; empty once the form has them, and None before it is drawn."""
    changed: dict[str, str] = field(default_factory=dict)
    """Those of this run that differ from their defaults."""
    drawn: set[str] = field(default_factory=set)
    faults: dict[str, str] = field(default_factory=dict)

    def begin(self) -> None:
        """Read the address, if a link or the browser's Back has brought another one."""
        if self.requested is None or session().has_arrived or streamlit_patches.came_back():
            text = address.value_of("settings")
            parts = text.split(SEPARATOR) if text else []
            self.requested = dict(zip_longest(parts[::2], parts[1::2], fillvalue=""))
        self.changed, self.drawn, self.faults = {}, set(), {}

    def end(self) -> None:
        """Write the address, and say which of its settings the form does not have."""
        text = SEPARATOR.join(part for pair in self.changed.items() for part in pair)
        unknown = [name for name in self.requested or () if name not in self.drawn]
        if unknown:
            self.faults[""] = f"“settings” names {quoted_names(unknown)}, which this form lacks."
        if self.faults:
            keep_note(f"{CONTROL}settings", *self.faults.values(), until=text)
        say_invalid("settings", text)
        if text:
            address.write("settings", text)
        else:
            address.remove("settings")
        self.requested = {}


class SettingInputs:
    """Inputs of one task, which keeps its own values.

    A value that the reader did not choose follows its default: the task's, or that of the run on
    screen. `live` is that run if it can go on: each input says whether it applies now, and if so
    changes the run.
    """

    def __init__(self, task: str, live: Run | None) -> None:
        self._task, self.live = task, live
        self._columns: Sequence[Any] = ()
        self._drawn = 0

    def draw(self, setting: Setting, value: Any) -> Any:
        """Draw the input of this setting, with the default `value`; return the chosen value."""
        key = self.key(setting.name)
        is_hot = setting.field in HOT_VALUES
        label, words = setting.label, [setting.help]
        if self.live:
            label = f"{HOT if is_hot else COLD} {label}"
            words.append(APPLIES_NOW if is_hot else NEEDS_RESTART)
        how: dict[str, Any] = {"label": label, "help": " ".join(filter(None, words)) or None}
        if self.live and is_hot:
            how |= {"on_change": change_now, "args": (self.live, setting.field, key)}
        if setting.is_switch:
            self.new_row()  # its label may take two lines
            return self.linked(setting, value, st.toggle, value=value, wrap=True, **how)
        if setting.options:
            self.new_row()  # half a row would cut the options' texts
            how |= {"options": setting.options, "index": setting.options.index(value)}
            return self.linked(setting, value, st.selectbox, **how)
        kind = float if setting.format else int
        return self.linked(
            setting,
            kind(value),
            self._place().number_input,
            min_value=kind(min(setting.low, value)),
            max_value=kind(max(setting.high, value)),
            value=kind(value),
            step=kind(setting.step),
            format=setting.format or None,
            **how,
        )

    def linked(self, setting: Setting, usual: Any, draw: Callable[..., Any], **how: Any) -> Any:
        """Draw this widget; the address has its value where that is not the default."""
        self._settle(setting, usual)
        how = {"label": setting.label, "key": self.key(setting.name)} | how
        value = draw(persist_state="session", **how)
        if value != usual:
            text = OF_LIST.join(value) if isinstance(value, list) else str(as_text(value))
            state_of(LinkedSettings).changed[setting.name] = text
        return value

    def value_of(self, setting: Setting, default: Any) -> Any:
        """The value of an input that is drawn later."""
        self._settle(setting, default)
        return widget_state.get(self.key(setting.name), default)

    def _settle(self, setting: Setting, default: Any) -> None:
        """Let the input follow its default, or take its value from a new address."""
        key, links = self.key(setting.name), state_of(LinkedSettings)
        follow(key, default)
        links.drawn.add(setting.name)
        text = (links.requested or {}).get(setting.name)
        value = None if text is None else parsed(text, setting, default)
        if value is not None:
            widget_state.put(key, value)
        elif text is not None:
            links.faults[setting.name] = invalid_value(text, setting, default)
        is_listed = setting.options and not isinstance(default, list)
        if (text is None and streamlit_patches.came_back()) or (
            is_listed and widget_state.get(key, default) not in setting.options
        ):
            widget_state.put(key, default)

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


def parsed(text: str, setting: Setting, default: Any) -> Any:
    """A value in the address, of the type of the default; None if the setting cannot have it."""
    if isinstance(default, bool):
        return {"true": True, "false": False}.get(text)
    if isinstance(default, list):
        values = text.split(OF_LIST) if text else []
        return values if set(values) <= set(setting.options) else None
    if setting.options:
        return text if text in setting.options else None
    try:
        number = type(default)(text)
    except ValueError:
        return None
    return number if setting.low <= number <= setting.high else None


def invalid_value(text: str, setting: Setting, default: Any) -> str:
    """Says that a setting cannot have this value."""
    if isinstance(default, bool | list) or setting.options:
        usual = ", ".join(default) if isinstance(default, list) else as_text(default)
        return address.invalid_option(setting.label, text, usual)
    return address.invalid_number(setting.label, text, setting.low, setting.high, default)


def change_now(run: Run, field: str, key: str) -> None:
    """In an input's callback: apply the chosen value to the run."""
    if not may_change(run):
        return
    with errors_noted("run"):
        run.change(**{field: widget_state.get(key)})
