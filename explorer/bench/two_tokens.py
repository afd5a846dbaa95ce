"""Which query and which key the Query and key page shows: by place and label, in the address."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from explorer import session
from explorer.components.labels import Label, text_of

LONGEST_NAME = 24


def choose(label: str, name: str, role: str, tokens: Sequence[Label], default: int) -> int:
    """A token by its place and its label; the address holds both.

    What nobody chose follows the default: the last query, and the key that it looks at
    most. A chosen place stays when another text puts another token there.
    """
    state = st.session_state
    labels = [f"{place} · {short(text_of(token))}" for place, token in enumerate(tokens)]
    before = state.get(f"_{name}_default")
    if name in state:
        asked = state[name]
        follows = asked == before or not isinstance(asked, int) or asked >= len(labels)
        state[name] = default if follows else asked
    else:
        _note_what_is_not_there(name, label.lower(), labels, default)
    state[f"_{name}_default"] = default
    picked = st.selectbox(
        label if role in ("query", "key") else f"{label}: {role}",
        range(len(labels)),
        index=default,
        format_func=labels.__getitem__,
        key=name,
        bind="query-params",
    )
    return default if picked is None else int(picked)


def _note_what_is_not_there(name: str, what: str, labels: list[str], default: int) -> None:
    """A widget drops what the address asks for in vain, so it is looked at before."""
    wanted = st.query_params.get(name)
    if wanted is None or wanted in labels:
        return
    note = f"There is no {what} “{short(wanted)}” in this text; showing {labels[default]}."
    st.session_state.setdefault("_pair_notes", {})[name] = note
    st.session_state.pop("_pair_chosen", None)


def say_what_was_asked_in_vain(*chosen: object) -> None:
    """The notes on the address, until something else is chosen."""
    state = st.session_state
    if chosen != state.setdefault("_pair_chosen", chosen):
        state.pop("_pair_notes", None)
    state["_pair_chosen"] = chosen
    for note in state.get("_pair_notes", {}).values():
        session.say(note)


def short(text: str) -> str:
    half = LONGEST_NAME // 2
    return text if len(text) <= LONGEST_NAME else f"{text[:half]}…{text[-half + 1 :]}"
