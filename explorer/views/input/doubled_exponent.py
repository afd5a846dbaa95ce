"""A common mistake, the doubled exponent of the sinusoids, next to the correct formula."""

import streamlit as st

from explorer.analysis.position_schemes import DOCUMENT, STILL, MeasuredTable, right_and_doubled
from explorer.app.context import PageContext
from explorer.app.controls import one_of
from explorer.app.messages import say
from explorer.text.number_format import spread
from explorer.views.input.scheme_figures import draw_positions
from explorer.views.shared import tables, widgets
from explorer.views.shared.code_panel import Script, script

STRIP, SQUARE = 230, 400
DOCUMENT_SIZE, OWN_SIZE = "Width of the lecture handout", "This model's width"
PLACES, OFFSET = DOCUMENT["places"], DOCUMENT["offset"]
RIGHT = "Right: the exponent is i / d for the sine and i / d for the cosine"
WRONG = "Wrong: the exponent is 2i / d for the sine and 2(i + 1) / d for the cosine"
"""Both with i = 0, 2, 4, …"""


def draw_doubled_exponent(context: PageContext, scheme: str) -> Script | None:
    """Both tables over 60 positions, and the numbers in which they differ; returns the code."""
    if scheme != "sinusoidal":
        say("This mistake exists only with sinusoidal positions: choose Sinusoidal above.")
        return None
    size = one_of("width", (DOCUMENT_SIZE, OWN_SIZE))
    width = DOCUMENT["d_model"] if size == DOCUMENT_SIZE else context.opened.config.d_model
    right, wrong = right_and_doubled(width, PLACES, OFFSET)
    sides = {RIGHT: ("right", right), WRONG: ("doubled", wrong)}
    with st.container(width=widgets.WIDEST):
        for title, (key, side) in sides.items():
            how = {"key": f"exponent_{key}", "title": title, "height": STRIP}
            draw_positions(side.table, "position", "dimension", unit="value", **how)
    for place, (title, (key, side)) in zip(widgets.side_by_side(1, 1), sides.items(), strict=True):
        with place:
            product = f"{title.partition(':')[0]}: dot product of two positions"
            how = {"key": f"products_{key}", "title": product, "height": SQUARE}
            products = side.table @ side.table.T
            draw_positions(products, "position", "position", unit="product", **how)
            tables.value_table(_measurements(side), f"{title}: measurements")
    st.caption(
        "i is 0, 2, 4, …, the dimension of the sine; the wrong code doubles it as if it were the "
        "index of the pair. So the divisor of the position, 10,000 to the exponent, is squared "
        f"for a sine, and larger still for its cosine. Width {width}, positions 0 to "
        f"{PLACES - 1}. Nearly constant: varies by less than {STILL} over all of them."
    )
    return script(doubled_code, width, PLACES, OFFSET)


def _measurements(measured: MeasuredTable) -> list[tuple[str, str]]:
    first = "  ".join(f"{value:.4f}".replace("-", "−") for value in measured.first)
    return [
        ("dimensions 0 to 3 of position 1", first),
        ("nearly constant dimensions", f"{measured.still} of {measured.table.shape[1]}"),
        (f"standard deviation of the dot products at distance {OFFSET}", spread(measured.spread)),
    ]


def doubled_code(width: int, places: int, offset: int) -> None:
    right, wrong = right_and_doubled(width, places, offset)
    for measured in (right, wrong):
        print(measured.first, measured.still, measured.spread)
