"""One of a few, or one token: choices that a link repeats, and what it asks for in vain is said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from explorer.app.messages import say
from explorer.app.session import session
from explorer.text.labels import cut
from explorer.text.token_labels import Label, text_of

LONGEST_WISH, LONGEST_TOKEN = 30, 24


def one_of(label: str, key: str, options: Sequence[str], default: str = "", **how: Any) -> str:
    """A choice that a link repeats; `as_list=True` draws a list to search in, not buttons.

    What nobody chose follows the default, the first option if none is given, and so does
    what is no longer among the options. What the address asks for in vain is said beside
    the choice until something else is chosen there.
    """
    default = default or options[0]
    follow(key, default)
    state, asked = st.session_state, st.query_params.get(key)
    if asked and asked not in options and not asked.isspace():
        meant = [each for each in options if _means(asked, each)]
        if not meant:
            _note(label, key, asked, default)
        elif key not in state:
            state[key] = meant[0]
    if state.get(key, default) not in options:
        state[key] = default
    how |= {"key": key, "bind": "query-params"}
    if how.pop("as_list", False):
        picked = st.selectbox(label, options, index=options.index(default), **how)
    else:
        picked = st.segmented_control(
            label, options, default=default, required=True, wrap=True, **how
        )
    picked = default if picked is None else str(picked)
    say_invalid(key, picked)
    return picked


def token(label: str, key: str, tokens: Sequence[Label], default: int, **how: Any) -> int:
    """The place of a token, from a list of places and labels; the address holds both.

    What nobody chose follows the default. A chosen place stays when another text puts
    another token there.
    """
    state, names = st.session_state, token_names(tokens)
    follow(key, default)
    if key not in state:
        asked = st.query_params.get(key)
        if asked and asked not in names:  # a widget drops what the address asks for in vain
            _note(label, key, asked, names[default])
    elif state[key] not in range(len(names)):
        state[key] = default
    picked = st.selectbox(
        label,
        range(len(names)),
        index=default,
        format_func=names.__getitem__,
        key=key,
        bind="query-params",
        **how,
    )
    place = default if picked is None else int(picked)
    say_invalid(key, names[place])
    return place


def number(label: str, key: str, last: int, default: int = 0, **how: Any) -> int:
    """A whole number from 0 to `last` on a slider; nothing is drawn where there is but one."""
    if last < 1:
        return 0
    state = st.session_state
    follow(key, default)
    if key not in state:  # the widget takes what is good from the address itself
        asked_within(label, key, 0, last, default)
    elif not 0 <= state[key] <= last:
        state[key] = default
    picked = int(st.slider(label, 0, last, default, key=key, bind="query-params", **how))
    say_invalid(key, picked)
    return picked


def asked_within(label: str, key: str, low: float, high: float, usual: float) -> float:
    """The number that the address asks for, the usual one where it asks for none or in vain.

    It is as whole as the usual one; what `say_invalid` says of the vain one is noted.
    """
    asked = st.query_params.get(key)
    if not asked:
        return usual
    try:
        number = type(usual)(asked)
    except ValueError:  # also for more digits than Python reads
        number = None
    if number is not None and low <= number <= high:
        return number
    sentence = (
        f"“{label}” goes from {low:,g} to {high:,g}, not “{cut(asked, LONGEST_WISH)}”; "
        f"it is {usual:,g}."
    )
    session().invalid[key] = usual, sentence
    return usual


def follow(key: str, default: Any) -> None:
    """What a widget shows, which is drawn next, follows its default until somebody chooses."""
    state, defaults = st.session_state, session().defaults
    is_untouched = key in state and key in defaults and state[key] == defaults[key]
    if is_untouched and state[key] != default:
        state[key] = default
    defaults[key] = default


def bring(key: str, place: int) -> None:
    """Choose a token for a list of another page, which is drawn in a later run."""
    st.session_state[key] = place
    session().defaults.pop(key, None)


def token_names(tokens: Sequence[Label]) -> list[str]:
    """What tokens are called where one is chosen: their place, and their label in short."""
    return [f"{place} · {cut(text_of(each), LONGEST_TOKEN)}" for place, each in enumerate(tokens)]


def _means(asked: str, option: str) -> bool:
    """Whether it is the option in other letters, or its number: learned, or 2 of “2 · …”."""
    return asked.casefold() in (option.casefold(), option.partition(" · ")[0])


def _note(label: str, key: str, asked: str, shown: str) -> None:
    name = label.partition(":")[0]
    sentence = f"“{name}” has no “{cut(asked, LONGEST_WISH)}” here; showing {shown}."
    session().invalid[key] = shown, sentence


def say_invalid(key: str, picked: Any) -> None:
    """The note on the address, as long as what it names is shown."""
    shown, sentence = session().invalid.get(key, ("", ""))
    if sentence and picked == shown:
        say(sentence)
    else:
        session().invalid.pop(key, None)
