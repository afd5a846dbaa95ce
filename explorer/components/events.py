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
    """The number of the last pick that was received, by view."""

    numbers: dict[str, int] = field(default_factory=dict)
    mark: str = field(default_factory=lambda: token_hex(4))
    """Tells a browser that its session has changed; no secret."""


def event(key: str, name: str) -> Any:
    """The value of an event of the view with this key; None if it is no longer drawn.

    A click that opens another view may overtake the last event of the view before.
    """
    return widget_state.get(key, dict[str, Any]()).get(name)


def place(value: Any, count: int) -> int | None:
    """The value if it is a whole number from 0 to below `count`."""
    return value if type(value) is int and 0 <= value < count else None


def cell(value: Any, rows: int, columns: int) -> Place | None:
    """The value if it is a row and a column of the table."""
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
    """A callback that passes on which of `count` this event names, if any."""

    def hand_over() -> None:
        at = place(event(key, name), count)
        if at is not None and tell:
            tell(at)

    return hand_over


def on_pin(
    key: str,
    rows: int,
    columns: int,
    tell: Callable[[Place | None], None] | None,
    parse: Callable[[Any, int, int], Place | None] = cell,
) -> Callable[[], None]:
    """A callback that tells which cell was pinned in this view, or None where one was unpinned.

    With `parse=on_a_side` it is a token instead.
    """

    def hand_over() -> None:
        choice = chosen(key)
        pinned = parse(choice, rows, columns)
        if tell and (pinned or choice == []):
            tell(pinned)

    return hand_over


def answered(key: str) -> tuple[int, str]:
    """The number of the last choice received from this view, and the mark of the session.

    They go to the browser with the choice, so that it knows which of its choices is answered. A new
    session, on another server, has received none.
    """
    heard = state_of(HeardPicks)
    return heard.numbers.get(key, 0), heard.mark


def on_a_side(value: Any, rows: int, columns: int) -> Place | None:
    """The value if it is a side and a token on it."""
    token = cell(value, 2, max(rows, columns))
    return token if token and token[1] < (rows, columns)[token[0]] else None
