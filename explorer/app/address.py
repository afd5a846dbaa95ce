"""The address in the browser: this module alone reads, checks and writes its parameters.

A parameter may be bound to a widget (`bound`): Streamlit reads it when the widget is first drawn
and writes what is chosen. All others are read with `value_of` and written with `write`.
`address_parameters.py` lists them.
"""

from collections.abc import Iterator
from math import isinf
from typing import Any

import streamlit as st

from explorer.app.address_parameters import PARAMETERS, Parameter
from explorer.app.session import session
from explorer.text.visible_text import cut

MOST_DIGITS = 9
"""No number in an address is longer; Python refuses to parse thousands of digits."""
LONGEST, MOST_VALUES, LONGEST_QUOTED = 4_000, 100, 30
"""Characters of a value other than text, values of a list, characters quoted in a message."""

_ROWS: dict[str, list[Parameter]] = {}
for _row in PARAMETERS:
    _ROWS.setdefault(_row.name, []).append(_row)


def is_declared(name: str) -> bool:
    """Whether the page on screen has this parameter."""
    return any(_rows_of(name))


def row_of(name: str) -> Parameter:
    """The row of a parameter of the page on screen; KeyError if the page does not declare it."""
    for row in _rows_of(name):
        return row
    raise KeyError(
        f"the page {session().page} does not declare {name}: add it to address_parameters.py"
    )


def _rows_of(name: str) -> Iterator[Parameter]:
    page = session().page
    return (row for row in _ROWS.get(name, []) if not page or not row.pages or page in row.pages)


# Reading and writing


def bound(name: str) -> dict[str, Any]:
    """Arguments of a widget by which Streamlit reads and writes this parameter."""
    return words_of(name) | {"bind": "query-params"}


def words_of(name: str) -> dict[str, Any]:
    """The label, key and help of its control; notes that the page draws it."""
    row, reader = row_of(name), session()
    reader.controls.setdefault(reader.page, set()).add(name)
    return {"label": row.label, "key": name} | ({"help": row.help} if row.help else {})


def value_of(name: str) -> str:
    """The value in the address, cut if it is too long; empty if there is none."""
    row_of(name)
    return _bounded(name, st.query_params.get(name, ""))


def values_of(name: str) -> list[str]:
    """The values of a list in the address."""
    row_of(name)
    return [_bounded(name, value) for value in st.query_params.get_all(name)[:MOST_VALUES]]


def is_named(name: str) -> bool:
    """Whether the address has this parameter, even without a value."""
    row_of(name)
    return name in names()


def names() -> list[str]:
    """The parameters that the address has."""
    return [*st.query_params]


def current_value(name: str) -> str:
    """The value of the widget; if it was never drawn, the value in the address."""
    return str(st.session_state.get(name) or value_of(name))


def is_infinite(name: str) -> bool:
    """Whether the address has a number that Python parses as infinite."""
    row_of(name)
    try:
        return isinf(float(st.query_params.get(name, "")))
    except ValueError:
        return False


def length_of(name: str) -> int:
    """The length of the value in the address, in characters."""
    row_of(name)
    return len(st.query_params.get(name, ""))


def write(name: str, value: str | list[str]) -> None:
    """Write a parameter without a bound widget into the address; a list repeats its name."""
    row_of(name)
    values = value if isinstance(value, list) else [value]
    if st.query_params.get_all(name) != values:
        st.query_params[name] = value


def remove(name: str) -> None:
    """Remove a parameter without a bound widget from the address."""
    st.query_params.pop(name, None)


def everything() -> list[tuple[str, str]]:
    """The whole address: every name with each of its values."""
    return [(name, value) for name in st.query_params for value in st.query_params.get_all(name)]


def _bounded(name: str, value: str) -> str:
    """The value, cut if it is too long; the cut value is invalid too."""
    is_long = _ROWS[name][0].kind != "text" and len(value) > LONGEST
    return value[:LONGEST] + "…" if is_long else value


# Checking


def whole_number(text: object, below: int = 10**MOST_DIGITS) -> int | None:
    """The text as a whole number from 0 to below `below`; None if it is none."""
    digits = str(text)
    is_number = digits.isascii() and digits.isdecimal() and len(digits) <= MOST_DIGITS
    return int(digits) if is_number and int(digits) < below else None


# Messages about invalid values


def invalid_option(label: str, value: str, default: object, where: str = "here") -> str:
    """Says that a control has no such option, token or number."""
    name = label.partition(":")[0]  # without the current value behind the colon
    return f"“{name}” has no “{cut(value, LONGEST_QUOTED)}” {where}; showing {default}."


def invalid_number(label: str, value: str, low: float, high: float, default: float) -> str:
    """Says that a value is out of range or no number."""
    quoted = cut(value, LONGEST_QUOTED)
    return f"“{label}” goes from {low:,g} to {high:,g}, not “{quoted}”; showing {default:,g}."


def shortened(length: int, limit: int, whose: str = "Your text") -> str:
    """Says that a text was cut."""
    return f"{whose} had {length:,} characters; the first {limit:,} are kept."


def invalid_model(name: str, default: str, fault: str | None = None) -> str:
    """Says that there is no such model, or why it cannot be opened."""
    if fault:
        return f"The model {name} cannot be opened: {fault} Showing {default}."
    return f"There is no model “{name[:40]}” here; showing {default}."


def no_model_in(place: str) -> str:
    """Says that a folder named at the start of the app has no model."""
    return (
        f"EXPLORER_MODELS names {place[-60:]}, where there is no model: it takes a folder with a "
        "config.json, or a folder of such folders."
    )
