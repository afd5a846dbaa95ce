"""The address: every parameter in it is read, checked and written here and nowhere else.

A parameter that a widget shows is bound to it (`bound`): Streamlit reads it when the widget is
drawn first and writes what is chosen. All others are read with `value_of` and written with `write`.
`PARAMETERS` in `address_parameters.py` lists them.
"""

from collections.abc import Iterator
from math import isinf
from typing import Any

import streamlit as st

from explorer.app.address_parameters import PARAMETERS, Parameter
from explorer.app.session import session
from explorer.text.visible_text import cut

MOST_DIGITS = 9
"""No place and no share is longer; Python refuses to read thousands of digits."""
LONGEST, MOST_VALUES, LONGEST_QUOTED = 4_000, 100, 30
"""Characters of a value that is no text, values of a list, characters quoted in a message."""

_ROWS: dict[str, list[Parameter]] = {}
for _row in PARAMETERS:
    _ROWS.setdefault(_row.name, []).append(_row)


def is_declared(name: str) -> bool:
    """Whether the page that is drawn has this parameter."""
    return any(_rows_here(name))


def row_of(name: str) -> Parameter:
    """The row of a parameter of the page that is drawn. KeyError where it declares none."""
    for row in _rows_here(name):
        return row
    raise KeyError(
        f"the page {session().page} does not declare {name}: add it to address_parameters.py"
    )


def _rows_here(name: str) -> Iterator[Parameter]:
    page = session().page
    return (row for row in _ROWS[name] if not page or not row.pages or page in row.pages)


# Reading and writing


def bound(name: str) -> dict[str, Any]:
    """Arguments of a widget that shows this parameter, which Streamlit then reads and writes."""
    return words_of(name) | {"bind": "query-params"}


def words_of(name: str) -> dict[str, Any]:
    """The label, the key and the help of its control, which this page is noted to draw."""
    row, reader = row_of(name), session()
    reader.controls.setdefault(reader.page, set()).add(name)
    return {"label": row.label, "key": name} | ({"help": row.help} if row.help else {})


def value_of(name: str) -> str:
    """What the address asks for, cut where it is too long; empty if nothing."""
    row_of(name)
    return _bounded(name, st.query_params.get(name, ""))


def values_of(name: str) -> list[str]:
    """The same of a list."""
    row_of(name)
    values = st.query_params.get_all(name)[:MOST_VALUES]
    return [_bounded(name, value) for value in values]


def is_named(name: str) -> bool:
    """Whether the address names this parameter, even without a value."""
    row_of(name)
    return name in st.query_params


def current_value(name: str) -> str:
    """What the widget shows; what the address asks for where it was never drawn."""
    return str(st.session_state.get(name) or value_of(name))


def is_infinite(name: str) -> bool:
    """Whether the address asks for a number that Python reads as infinite."""
    row_of(name)
    try:
        return isinf(float(st.query_params.get(name, "")))
    except ValueError:
        return False


def length_asked(name: str) -> int:
    """How many characters the address gives this parameter."""
    row_of(name)
    return len(st.query_params.get(name, ""))


def write(name: str, value: str | list[str]) -> None:
    """Put a parameter that no widget is bound to into the address; a list repeats its name."""
    row_of(name)
    values = value if isinstance(value, list) else [value]
    if st.query_params.get_all(name) != values:
        st.query_params[name] = value


def remove(name: str) -> None:
    """Take a parameter that no widget is bound to out of the address."""
    st.query_params.pop(name, None)


def everything() -> list[tuple[str, str]]:
    """The whole address: every name with each of its values."""
    return [(name, value) for name in st.query_params for value in st.query_params.get_all(name)]


def _bounded(name: str, value: str) -> str:
    """What is too long stays invalid."""
    is_long = _ROWS[name][0].kind != "text" and len(value) > LONGEST
    return value[:LONGEST] + "…" if is_long else value


# Checking


def whole_number(text: object, below: int = 10**MOST_DIGITS) -> int | None:
    """The whole number from 0 that this text is, where it is one and below `below`."""
    digits = str(text)
    is_one = digits.isascii() and digits.isdecimal() and len(digits) <= MOST_DIGITS
    return int(digits) if is_one and int(digits) < below else None


# Messages about invalid values


def invalid_option(label: str, value: str, shown: object, where: str = "here") -> str:
    """That a control has no such option, token or number."""
    name = label.partition(":")[0]  # without what it says of the moment
    return f"“{name}” has no “{_quoted(value)}” {where}; showing {shown}."


def invalid_number(label: str, value: str, low: float, high: float, shown: float) -> str:
    """That a number is out of its range, or is none."""
    quoted = _quoted(value)
    return f"“{label}” goes from {low:,g} to {high:,g}, not “{quoted}”; showing {shown:,g}."


def shortened(length: int, limit: int, whose: str = "Your text") -> str:
    """That only the beginning of a text is kept."""
    return f"{whose} had {length:,} characters; the first {limit:,} are kept."


def invalid_model(name: str, shown: str, fault: str | None = None) -> str:
    """That there is no such model, or why it cannot be opened."""
    if fault:
        return f"The model {name} cannot be opened ({fault}); showing {shown}."
    return f"There is no model “{name[:40]}” here; showing {shown}."


def removed_model(name: str, shown: str) -> str:
    """That the model on screen no longer exists."""
    return f"The model {name[:60]} no longer exists; showing {shown}."


def no_model_in(place: str) -> str:
    """That a place named at the start of the app holds no model."""
    return (
        f"EXPLORER_MODELS names {place[-60:]}, where there is no model: it takes a folder with a "
        "config.json, or a folder of such folders."
    )


def _quoted(value: str) -> str:
    return cut(value, LONGEST_QUOTED)
