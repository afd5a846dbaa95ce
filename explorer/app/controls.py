"""Controls whose choice is in the address: one of a few, a token, a number, a text, a switch.

What nobody chose follows its default. What the address asks for and does not exist is replaced
by the default, and a message beside the control says so until something else is chosen there.
"""

import re
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import streamlit as st

from explorer.app import address, streamlit_patches
from explorer.app.messages import CONTROL, draw_notes, keep_note
from explorer.app.session import session
from explorer.text.token_labels import Label, texts
from explorer.text.visible_text import cut

LONGEST_TOKEN = 24
TOKEN_ID = re.compile(r" \(\d+\)$")
PERSISTENT = {"persist_state": "session"}


def one_of(key: str, options: Sequence[str], default: str = "", **how: Any) -> str:
    """One of these options; the default is the first if none is given.

    `as_list=True` draws a list to search in, not buttons. `said_in` is the place of the message
    about the address, where that is not beside it.
    """
    default = default or options[0]
    follow(key, default)
    how = address.bound(key) | how
    state, value = st.session_state, address.value_of(key)
    if value.strip():
        meant = value if value in options else _meant(value, options)
        if meant is None:
            note_invalid(key, default, address.invalid_option(how["label"], value, default))
        elif key not in state:
            state[key] = meant
    if state.get(key, default) not in options:
        state[key] = default
    place_of_message = how.pop("said_in", nullcontext())
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


def token(key: str, tokens: Sequence[Label], default: int, **how: Any) -> int:
    """The place of a token, from a list of places and labels; the address holds both.

    A chosen place stays when another text has another token there.
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
    """A whole number from 0 to `last` on a slider; nothing is drawn where there is but one."""
    if last < 1:
        return 0
    state = st.session_state
    follow(key, default)
    if key in state and not 0 <= state[key] <= last:
        state[key] = default
    return int(_number(st.slider, key, (0, last, default), **how))


def slider(key: str, *range_of: float, **how: Any) -> float:
    """A number on a slider, as whole as the usual one; it stays chosen from page to page.

    Its lowest, highest and usual value are those of its row unless they are given.
    """
    return _number(st.slider, key, range_of, **PERSISTENT, **how)


def whole(key: str, *range_of: int, **how: Any) -> int:
    """A whole number to type; it stays chosen from page to page."""
    if address.is_infinite(key):  # the widget would fail on it
        low, high, usual = _range(key, range_of)
        asked_within(key, low, high, usual)
        address.remove(key)
        st.rerun()
    how = {"step": 1, **PERSISTENT, **how}
    return int(_number(st.number_input, key, range_of, **how))


def text_field(key: str, usual: str = "", **how: Any) -> str:
    """A text to type, of as many characters as its row says; of a longer one the beginning is kept.

    `has_lines=True` draws a field that may have several lines.
    """
    most, how = address.row_of(key).most, address.bound(key) | how
    if key not in st.session_state and (length := address.length_asked(key)) > most:
        kept = address.value_of(key)[:most]
        whose = f"“{how['label']}” in the address"
        note_invalid(key, kept, address.shortened(length, most, whose))
    draw = st.text_area if how.pop("has_lines", False) else st.text_input
    typed = str(draw(value=usual, max_chars=most, **how) or "")
    say_invalid(key, typed)
    return typed


def switch(key: str, **how: Any) -> bool:
    """On or off."""
    value, usual = address.value_of(key), bool(address.row_of(key).usual)
    how = address.bound(key) | how
    if key not in st.session_state and value.lower() not in ("", "true", "false"):
        sentence = address.invalid_option(how["label"], value, "on" if usual else "off")
        note_invalid(key, usual, sentence)
    picked = st.toggle(value=usual, **how)
    say_invalid(key, picked)
    return picked


def _number(draw: Any, key: str, range_of: Sequence[float], **how: Any) -> float:
    low, high, usual = _range(key, range_of)
    how = address.bound(key) | ({"step": step} if (step := address.row_of(key).step) else {}) | how
    if key not in st.session_state:  # the widget takes a valid number from the address itself
        asked_within(key, low, high, usual, how["label"])
    picked: float = draw(min_value=low, max_value=high, value=usual, **how)
    say_invalid(key, picked)
    return picked


def _range(key: str, given: Sequence[float]) -> Sequence[float]:
    """The lowest, the highest and the usual value: those given, or those of the row."""
    row = address.row_of(key)
    return given or (row.low, row.high, row.usual)


def asked_within(key: str, low: float, high: float, usual: float, label: str = "") -> float:
    """The number that the address asks for, as whole as the usual one; that one if invalid."""
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
    """What a widget shows, which is drawn next, follows its default until somebody chooses."""
    state, defaults = st.session_state, session().defaults
    is_untouched = key in state and key in defaults and state[key] == defaults[key]
    if is_untouched and state[key] != default:
        state[key] = default
    defaults[key] = default


def chosen_rows(table: Any, count: int) -> list[int]:
    """The rows that are chosen in a table of so many; a browser may say anything."""
    said = table["selection"]["rows"]
    rows = said if isinstance(said, list) else []
    return [each for each in rows if type(each) is int and 0 <= each < count]


def choose_token(key: str, place: int) -> None:
    """Choose a token for a list of another page, which is drawn in a later run."""
    st.session_state[key] = place
    session().defaults.pop(key, None)


def token_names(tokens: Sequence[Label]) -> list[str]:
    """What tokens are called where one is chosen: their place, and their label in short."""
    return [f"{place} · {cut(name, LONGEST_TOKEN)}" for place, name in enumerate(texts(tokens))]


def note_invalid(key: str, shown: Any, sentence: str) -> None:
    """Keep a message about the address for as long as `shown` is shown instead."""
    keep_note(f"{CONTROL}{key}", sentence, until=shown)


def say_invalid(key: str, picked: Any) -> None:
    """The message about this control, as long as what it names is shown."""
    draw_notes(f"{CONTROL}{key}", picked)


def _meant(value: str, options: Sequence[str]) -> str | None:
    """The option in other letters, or by its number: 2 of “2 · …”, the ID of “… (149)”."""
    value, place = value.casefold(), TOKEN_ID.search(value)
    for each in options:
        if value in (each.casefold(), each.partition(" · ")[0]):
            return each
        if place and each.endswith(place[0]):
            return each
    return None


# Panels, whose contents are sent once they are open; only then does the address have their key


def expander(key: str, **how: Any) -> Any:
    """Closed at first; `.open` says whether it is open."""
    _check_panel(key)
    panel = st.expander(**(address.bound(key) | how))
    say_invalid(key, panel.open)
    return panel


def popover(key: str, icon: str, **how: Any) -> Any:
    """The same behind a button; Streamlit binds none to the address."""
    _check_panel(key)
    if key not in st.session_state or streamlit_patches.came_back():
        st.session_state[key] = address.value_of(key).lower() == "true"
    panel = st.popover(icon=icon, on_change="rerun", **address.words_of(key), **how)
    if panel.open:
        address.write(key, "true")
    else:
        address.remove(key)
    say_invalid(key, panel.open)
    return panel


def _check_panel(key: str) -> None:
    value = address.value_of(key)
    if key not in st.session_state and value.lower() not in ("", "true", "false"):
        sentence = address.invalid_option(address.row_of(key).label, value, "it closed")
        note_invalid(key, False, sentence)
