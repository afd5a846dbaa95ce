"""Events of a view, checked: a browser may send anything."""

from __future__ import annotations

from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any

import streamlit as st

from explorer.app.session import state_of

Place = tuple[int, int]
"""A row and a column, or a side (0 for rows, 1 for columns) and a place on it."""
MOST_PICKS = 1 << 31


@dataclass
class HeardPicks:
    """By view, the number of the last pick that was heard of."""

    numbers: dict[str, int] = field(default_factory=dict)
    mark: str = field(default_factory=lambda: token_hex(4))
    """Tells a browser that its session is another one; no secret."""


def event(key: str, name: str) -> Any:
    """The value of this event of the view with this key; None where it is no longer drawn.

    A click that leads to another view may overtake the last event of the one before it.
    """
    return st.session_state.get(key, {}).get(name)


def place(value: Any, count: int) -> int | None:
    """One of `count`, counted from zero."""
    return value if type(value) is int and 0 <= value < count else None


def cell(value: Any, rows: int, columns: int) -> Place | None:
    """A row and a column that there are."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        return None
    row, column = place(value[0], rows), place(value[1], columns)
    return None if row is None or column is None else (row, column)


def picked(key: str, rows: int, columns: int) -> Place | None:
    """The cell that was picked just now, for the callback; its number is noted for `answered`."""
    said = event(key, "picked")
    if not isinstance(said, list) or len(said) != 3 or place(said[2], MOST_PICKS) is None:
        return None
    state_of(HeardPicks).numbers[key] = said[2]
    return cell(said[:2], rows, columns)


def answered(key: str) -> tuple[int, str]:
    """Which pick of this view was heard last, and by which session.

    They go back with what is chosen, so that the browser knows what answers its last pick. A
    session after this one, on another server, has heard of none.
    """
    heard = state_of(HeardPicks)
    return heard.numbers.get(key, 0), heard.mark


def on_a_side(value: Any, rows: int, columns: int) -> Place | None:
    """A side, and a token that stands on it."""
    found = cell(value, 2, max(rows, columns))
    return found if found and found[1] < (rows, columns)[found[0]] else None
