"""Events of a view, checked: a browser may send anything."""

from collections.abc import Callable
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any

from explorer.app import widget_state
from explorer.app.session import state_of

Place = tuple[int, int]
"""A row and a column, or a side (0 for rows, 1 for columns) and a place on it."""
MOST_CHOICES = 1 << 31


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
    return widget_state.get(key, dict[str, Any]()).get(name)


def place(value: Any, count: int) -> int | None:
    """One of `count`, counted from zero."""
    return value if type(value) is int and 0 <= value < count else None


def cell(value: Any, rows: int, columns: int) -> Place | None:
    """A row and a column that there are."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        return None
    row, column = place(value[0], rows), place(value[1], columns)
    return None if row is None or column is None else (row, column)


def chosen(key: str) -> Any:
    """The choice just made in this view, for its callback; `answered` gives its number back."""
    value = event(key, "chosen")
    if not isinstance(value, list) or len(value) != 2 or place(value[1], MOST_CHOICES) is None:
        return None
    state_of(HeardPicks).numbers[key] = value[1]
    return value[0]


def on_place(
    key: str, name: str, count: int, tell: Callable[[int], None] | None
) -> Callable[[], None]:
    """A callback that tells which of `count` this event names, where it names one."""

    def hand_over() -> None:
        named = place(event(key, name), count)
        if named is not None and tell:
            tell(named)

    return hand_over


def on_pin(
    key: str,
    rows: int,
    columns: int,
    tell: Callable[[Place | None], None] | None,
    read: Callable[[Any, int, int], Place | None] = cell,
) -> Callable[[], None]:
    """A callback that tells which cell was pinned in this view, or None where one was unpinned.

    With `read=on_a_side` it is a token instead.
    """

    def hand_over() -> None:
        choice = chosen(key)
        pinned = read(choice, rows, columns)
        if tell and (pinned or choice == []):
            tell(pinned)

    return hand_over


def answered(key: str) -> tuple[int, str]:
    """Which choice in this view was heard last, and by which session.

    They go to the browser with what is chosen, so that it knows what answers its last choice. A
    session after this one, on another server, has heard of none.
    """
    heard = state_of(HeardPicks)
    return heard.numbers.get(key, 0), heard.mark


def on_a_side(value: Any, rows: int, columns: int) -> Place | None:
    """A side, and a token that stands on it."""
    found = cell(value, 2, max(rows, columns))
    return found if found and found[1] < (rows, columns)[found[0]] else None
