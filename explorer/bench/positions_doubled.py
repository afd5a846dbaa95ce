"""A mistake that circulates: the exponent of the sinusoids doubled, beside the right one."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st
from torch import Tensor

from explorer import session, tables, widgets
from explorer.analysis.positions import DOCUMENT, STILL, Measured, right_and_doubled
from explorer.choices import one_of
from explorer.components import matrix
from explorer.library import Opened
from explorer.numbers import three
from explorer.snippets import positions as snippets

STRIP, SQUARE = 230, 400
DOCUMENT_SIZE, OWN_SIZE = "The document's width", "This model's width"
PLACES, OFFSET = DOCUMENT["places"], DOCUMENT["offset"]


def mistake(opened: Opened, name: str) -> Callable[[], str] | None:
    """Both tables over 60 positions, the numbers that tell, and the lines of it."""
    if name != "sinusoidal":
        session.say("This mistake is one of the sinusoidal scheme: choose Sinusoidal above.")
        return None
    size = one_of("Width", "width", (DOCUMENT_SIZE, OWN_SIZE))
    width = DOCUMENT["d_model"] if size == DOCUMENT_SIZE else opened.config.d_model
    right, wrong = right_and_doubled(width, PLACES, OFFSET)
    sides = {
        "Right: both of a pair have the exponent 2i / d": ("right", right),
        "Wrong: i already steps by two, and is doubled again": ("doubled", wrong),
    }
    with st.container(width=widgets.WIDEST):
        for title, (key, found) in sides.items():
            st.markdown(f"**{title}**")
            _matrix(found.table, "dimension", f"exponent_{key}", STRIP)
    for place, (title, (key, found)) in zip(widgets.side_by_side(1, 1), sides.items(), strict=True):
        with place:
            st.markdown(f"**{title.partition(':')[0]}: dot product of two positions**")
            _matrix(found.table @ found.table.T, "position", f"products_{key}", SQUARE)
            tables.steps(lines(found), f"{title}: the numbers that tell")
    st.caption(
        f"A loop over i = 0, 2, 4, … that takes 2i / d for the sine and 2(i + 1) / d for the "
        f"cosine slows every dimension twice too fast. Width {width}, positions 0 to {PLACES - 1}. "
        f"Barely moves: less than {STILL} over all of them."
    )
    return lambda: snippets.doubled(width, PLACES, OFFSET)


def lines(found: Measured) -> list[tuple[str, str]]:
    """The numbers that give it away."""
    first = "  ".join(f"{value:.4f}".replace("-", "−") for value in found.first)
    return [
        ("numbers 0 to 3 of position 1", first),
        ("dimensions that barely move", f"{found.still} of {found.table.shape[1]}"),
        (f"spread of the products {OFFSET} apart", three(found.spread)),
    ]


def _matrix(values: Tensor, across: str, key: str, height: int) -> None:
    """Positions down, dimensions or positions across."""
    rows, columns = ([str(each) for each in range(size)] for size in values.shape)
    matrix(
        values,
        rows,
        columns,
        key=key,
        scale="diverging",
        row_name="position",
        column_name=across,
        sentence=f"Position {{row}}, {across} {{column}}: {{value}}",
        unit="value" if across == "dimension" else "product",
        height=height,
    )
