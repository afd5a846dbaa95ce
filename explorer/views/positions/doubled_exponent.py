"""A mistake that circulates: the exponent of the sinusoids doubled, beside the right one."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st
from torch import Tensor

from explorer.analysis.position_experiments import DOCUMENT, Measured, right_and_doubled
from explorer.app.controls import one_of
from explorer.app.messages import say
from explorer.catalog.opened_model import Opened
from explorer.components import matrix
from explorer.snippets import positions_code as snippets
from explorer.text.number_format import spread
from explorer.views.museum.mistakes.position_mistakes import STILL
from explorer.views.shared import tables, widgets

STRIP, SQUARE = 230, 400
DOCUMENT_SIZE, OWN_SIZE = "The document's width", "This model's width"
PLACES, OFFSET = DOCUMENT["places"], DOCUMENT["offset"]
RIGHT = "Right: the exponent is i / d for the sine and i / d for the cosine"
WRONG = "Wrong: the exponent is 2i / d for the sine and 2(i + 1) / d for the cosine"
"""Both with i = 0, 2, 4, …"""


def mistake(opened: Opened, name: str) -> Callable[[], str] | None:
    """Both tables over 60 positions, the numbers that tell, and the lines of it."""
    if name != "sinusoidal":
        say("This mistake is one of the sinusoidal scheme: choose Sinusoidal above.")
        return None
    size = one_of("Width", "width", (DOCUMENT_SIZE, OWN_SIZE))
    width = DOCUMENT["d_model"] if size == DOCUMENT_SIZE else opened.config.d_model
    right, wrong = right_and_doubled(width, PLACES, OFFSET)
    sides = {
        RIGHT: ("right", right),
        WRONG: ("doubled", wrong),
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
        "i is 0, 2, 4, …, the number of the sine's dimension; the wrong code doubles it as if it "
        "were the number of the pair. Then 10,000 to the exponent, by which the position is "
        "divided, is the square of what it should be for a sine, and more for its cosine. "
        f"Width {width}, positions 0 to {PLACES - 1}. "
        f"Barely moves: less than {STILL} over all of them."
    )
    return lambda: snippets.doubled(width, PLACES, OFFSET)


def lines(found: Measured) -> list[tuple[str, str]]:
    """The numbers that give it away."""
    first = "  ".join(f"{value:.4f}".replace("-", "−") for value in found.first)
    return [
        ("numbers 0 to 3 of position 1", first),
        ("dimensions that barely move", f"{found.still} of {found.table.shape[1]}"),
        (f"spread of the products {OFFSET} apart", spread(found.spread)),
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
