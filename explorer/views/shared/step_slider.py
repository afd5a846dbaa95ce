"""Steps forward and back, also several on one page: a slider with two buttons, in the address."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from explorer.app import url
from explorer.app.controls import asked_within, follow, say_invalid


def stepper(label: str, key: str, names: Sequence[str], usual: int, *, arrows: bool = False) -> int:
    """Which of these steps is shown; what nobody chose is the usual one.

    With `arrows` the arrow keys press the buttons, which one stepper of a page may have.
    """
    state, count = st.session_state, len(names)
    follow(key, usual)
    if key not in state:
        state[key] = asked_within(label, key, 0, count - 1, usual)
    elif not 0 <= state[key] < count:
        state[key] = usual
    at = int(state[key])
    back, place, on = st.columns([2, 9, 2], vertical_alignment="bottom")

    def move(by: int) -> None:
        state[key] = max(0, min(count - 1, state[key] + by))

    sides = ((back, "Back", -1, "Left", at == 0), (on, "Next", 1, "Right", at == count - 1))
    for side, name, by, arrow, is_end in sides:
        side.button(
            name,
            key=f"{key}_{name.lower()}",
            on_click=move,
            args=(by,),
            shortcut=arrow if arrows else None,
            disabled=is_end,
            width="stretch",
        )
    if count > 1:
        place.slider(
            f"{label}: {names[at]}",
            0,
            count - 1,
            **url.bound(key),
            persist_state="session",
        )
    say_invalid(key, at)
    return at
