"""Controls whose value is in the address: an option, a token, a number, a text, a switch.

Until the reader chooses, a control follows its default. An invalid value in the address is replaced
by the default, and a message beside the control says so until something else is chosen there.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import streamlit as st

from explorer.app import address, streamlit_patches
from explorer.app.messages import CONTROL, draw_notes, keep_note
from explorer.app.session import redraw, session
from explorer.text.token_labels import Label, texts
from explorer.text.visible_text import cut

LONGEST_TOKEN = 24
TOKEN_ID = re.compile(r" \(\d+\)$")
PERSISTENT = {"persist_state": "session"}


def one_of(key: str, options: Sequence[str], default: str = "", **how: Any) -> str:
    """One of these options; without a default, the first.

    `as_list=True` draws a list to search in, not buttons. `message_in` is the place of the message
    about the address, where that is not beside the control.
    """
    default = default or options[0]
    follow(key, default)
    how = address.bound(key) | how
    state, value = st.session_state, address.value_of(key)
    if value.strip():
        option = value if value in options else _find_option(value, options)
        if option is None:
            note_invalid(key, default, address.invalid_option(how["label"], value, default))
        elif key not in state:
            state[key] = option
    if state.get(key, default) not in options:
        state[key] = default
    place_of_message = how.pop("message_in", nullcontext())
    if how.pop("as_list", False):
        picked = st.selectbox(options=options, index=options.index(default), **how)
    else:
        picked = st.segmented_control(
            options=options, default=default, required=True, wrap=True, **how
        )
    picked = default if picked is None else str(picked)
    with place_of_message:
        say_invalid(key, picked)
    return picked


def option_of(key: str, options: Sequence[str]) -> str:
    """The option that `one_of` is about to show, for what stands above it."""
    value = address.current_value(key)
    return value if value in options else _find_option(value, options) or options[0]


def token(key: str, tokens: Sequence[Label], default: int, **how: Any) -> int:
    """The place of a token, chosen from a list; the address holds its place and its label.

    A chosen place stays when the text changes.
    """
    state, names = st.session_state, token_names(tokens)
    follow(key, default)
    how = address.bound(key) | how
    if key not in state:
        value = address.value_of(key)
        if value and value not in names:
            sentence = address.invalid_option(how["label"], value, names[default])
            note_invalid(key, names[default], sentence)
    elif state[key] not in range(len(names)):
        state[key] = default
    picked = st.selectbox(
        options=range(len(names)), index=default, format_func=names.__getitem__, **how
    )
    place = default if picked is None else int(picked)
    say_invalid(key, names[place])
    return place


def number(key: str, last: int, default: int = 0, **how: Any) -> int:
    """A whole number from 0 to `last` on a slider, which is not drawn if there is only one."""
    if last < 1:
        return 0
    state = st.session_state
    follow(key, default)
    if key in state and not 0 <= state[key] <= last:
        state[key] = default
    return int(_number(st.slider, key, (0, last, default), **how))


def slider(key: str, *range_of: float, **how: Any) -> float:
    """A number on a slider, of the default's type; it stays chosen from page to page.

    `range_of` has its lowest, highest and default value; without them they are those of its row.
    """
    return _number(st.slider, key, range_of, **PERSISTENT, **how)


def whole(key: str, *range_of: int, **how: Any) -> int:
    """A whole number to type; it stays chosen from page to page."""
    if address.is_infinite(key):  # the widget would fail on it
        low, high, usual = _range(key, range_of)
        number_in_address(key, low, high, usual)
        address.remove(key)
        redraw()
    how = {"step": 1, **PERSISTENT, **how}
    return int(_number(st.number_input, key, range_of, **how))


def text_field(key: str, usual: str = "", **how: Any) -> str:
    """A text to type, cut to as many characters as its row says.

    `has_lines=True` draws a field that may have several lines.
    """
    most, how = address.row_of(key).most, address.bound(key) | how
    if key not in st.session_state and (length := address.length_of(key)) > most:
        beginning = address.value_of(key)[:most]
        whose = f"“{how['label']}” in the address"
        note_invalid(key, beginning, address.shortened(length, most, whose))
    draw = st.text_area if how.pop("has_lines", False) else st.text_input
    typed = str(draw(value=usual, max_chars=most, **how) or "")
    say_invalid(key, typed)
    return typed


def switch(key: str, **how: Any) -> bool:
    """On or off."""
    usual, how = bool(address.row_of(key).usual), address.bound(key) | how
    _check_switch(key, how["label"], usual, "on" if usual else "off")
    picked = st.toggle(value=usual, **how)
    say_invalid(key, picked)
    return picked


def _number(draw: Any, key: str, range_of: Sequence[float], **how: Any) -> float:
    low, high, usual = _range(key, range_of)
    how = address.bound(key) | ({"step": step} if (step := address.row_of(key).step) else {}) | how
    if key not in st.session_state:  # the widget takes a valid number from the address itself
        number_in_address(key, low, high, usual, how["label"])
    picked: float = draw(min_value=low, max_value=high, value=usual, **how)
    say_invalid(key, picked)
    return picked


def _range(key: str, range_of: Sequence[float]) -> Sequence[float]:
    """The lowest, the highest and the default value; without a `range_of`, those of the row."""
    row = address.row_of(key)
    return range_of or (row.low, row.high, row.usual)


def number_in_address(key: str, low: float, high: float, usual: float, label: str = "") -> float:
    """The number in the address, of the default's type; the default if it is invalid."""
    value = address.value_of(key)
    if not value:
        return usual
    try:
        number = type(usual)(value)
    except ValueError:  # also for more digits than Python reads
        number = None
    if number is not None and low <= number <= high:
        return number
    label = label or address.row_of(key).label
    note_invalid(key, usual, address.invalid_number(label, value, low, high, usual))
    return usual


def follow(key: str, default: Any) -> None:
    """Let the widget that is drawn next follow its default until the reader chooses."""
    state, defaults = st.session_state, session().defaults
    is_untouched = key in state and key in defaults and state[key] == defaults[key]
    if is_untouched and state[key] != default:
        state[key] = default
    defaults[key] = default


def chosen_rows(table: Any, count: int) -> list[int]:
    """The rows that are chosen in a table of so many; a browser may send anything."""
    rows = table["selection"]["rows"]
    if not isinstance(rows, list):
        return []
    return [row for row in rows if type(row) is int and 0 <= row < count]


def choose(key: str, value: object) -> None:
    """Choose this in a control that is drawn later; it no longer follows its default."""
    st.session_state[key] = value
    session().defaults.pop(key, None)


def token_names(tokens: Sequence[Label]) -> list[str]:
    """The options of a list of tokens: the place and the shortened label of each."""
    return [f"{place} · {cut(name, LONGEST_TOKEN)}" for place, name in enumerate(texts(tokens))]


def note_invalid(key: str, default: Any, sentence: str) -> None:
    """Keep a message about the address for as long as the control shows this default."""
    keep_note(f"{CONTROL}{key}", sentence, until=default)


def say_invalid(key: str, picked: Any) -> None:
    """Show the message about this control as long as it applies."""
    draw_notes(f"{CONTROL}{key}", picked)


def _find_option(value: str, options: Sequence[str]) -> str | None:
    """The option in upper or lower case, or by its number: 2 of “2 · …”, the ID of “… (149)”."""
    value, place = value.casefold(), TOKEN_ID.search(value)
    for option in options:
        if value in (option.casefold(), option.partition(" · ")[0]):
            return option
        if place and option.endswith(place[0]):
            return option
    return None


# Panels: their contents are sent, and the address has their key, only while they are open


def expander(key: str, **how: Any) -> Any:
    """An expander, closed at first; `.open` says whether it is open."""
    _check_switch(key, address.row_of(key).label, False, "it closed")
    panel = st.expander(**(address.bound(key) | how))
    say_invalid(key, panel.open)
    return panel


def popover(key: str, icon: str, **how: Any) -> Any:
    """The same behind a button, which Streamlit cannot bind to the address."""
    _check_switch(key, address.row_of(key).label, False, "it closed")
    if key not in st.session_state or streamlit_patches.came_back():
        st.session_state[key] = address.value_of(key).lower() == "true"
    panel = st.popover(icon=icon, on_change="rerun", **address.words_of(key), **how)
    if panel.open:
        address.write(key, "true")
    else:
        address.remove(key)
    say_invalid(key, panel.open)
    return panel


def _check_switch(key: str, label: str, usual: bool, state: str) -> None:
    """Keep a message if the address has a value that is neither true nor false."""
    value = address.value_of(key)
    if key not in st.session_state and value.lower() not in ("", "true", "false"):
        note_invalid(key, usual, address.invalid_option(label, value, state))


def undo_buttons(now: Any, clear: Any, put: Callable[..., None], end: str = "", **how: Any) -> None:
    """Buttons that put `now` undone, redone or cleared; what would change nothing is disabled."""
    for label, to in {"Undo": now.undo(), "Redo": now.redo(), "Clear": clear}.items():
        how["icon"] = f":material/{label.lower()}{'_all' * (to is clear)}:"
        st.button(label, label.lower() + end, on_click=put, args=(to,), disabled=to == now, **how)
