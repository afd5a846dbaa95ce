"""One scheme of positions in pictures: its table, two positions, waves, hands and distance."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st
from torch import Tensor

from explorer.analysis.position_schemes import Scheme, scheme
from explorer.app.context import page_context
from explorer.app.controls import number, one_of
from explorer.catalog.opened_model import Opened
from explorer.charts.position_curves import by_head, by_offset, clocks, waves
from explorer.components import matrix
from explorer.snippets import positions_code as snippets
from explorer.text.number_format import three
from explorer.views.positions.missing_positions import NO_TABLE, missing
from explorer.views.shared import widgets

SHOWN, CLOCKS = 48, 6
ODD = 7
OWN_WIDTH, ODD_WIDTH = "This model's width", f"An odd width, {ODD}"
CURVE_HEIGHT, MATRIX_HEIGHT, LOWEST = 260, 430, 180
WIDTH, AROUND = 490, 105
"""Pixels of half a screen, and of the labels and the legend around a matrix."""


def pictures(opened: Opened, name: str) -> Callable[[], str] | None:
    """What the scheme does to every position, and what follows for two; the lines of it."""
    at = page_context().choice
    count = min(SHOWN, opened.config.max_len) if name == "learned" else SHOWN
    width = _width(opened) if name == "sinusoidal" else opened.config.d_model
    shown = scheme(name, opened.model, count, at.head, at.part.split(".")[0], width)
    if shown is None:
        missing(name, NO_TABLE)
        return None
    if name == "none":
        st.caption("So there is nothing to draw: look at “Another order”.")
        return None
    if shown.unit == "bucket":
        st.caption(
            "This model has no trained numbers for distances; shown is which bucket each distance "
            "would fall into, at its sizes."
        )
    st.caption(f"Shown are the first {count} positions.")
    if shown.table is None:
        _by_distance(shown, at.head)
    else:
        _added(shown, shown.table, count)
    here, config, folder = (at.part, at.layer, at.head), opened.config, page_context().folder
    return lambda: snippets.scheme(config, folder, name, count, here, width) or ""


def _width(opened: Opened) -> int:
    """The model's own, or an odd one, of which the last sine has no cosine."""
    chosen = one_of("Width", "table_width", (OWN_WIDTH, ODD_WIDTH))
    width = opened.config.d_model if chosen == OWN_WIDTH else ODD
    if width % 2:
        half = width // 2
        st.caption(
            f"{width} numbers are {half} pairs and a last sine without its cosine. The lecture "
            f"handout's code fails here: it puts {half + 1} cosines into {half} columns. The lone "
            "sine makes the product of two positions depend, a little, on more than their distance."
        )
    return width


def _by_distance(shown: Scheme, head: int) -> None:
    left, right = widgets.side_by_side(1, 1)
    of_heads = shown.unit == "bias"
    with left:
        title = f"Head {head}: query against key" if of_heads else "The bucket of query and key"
        _places("key", title, shown.unit, "products", shown.products, row="query")
    with right:
        title = "Every head: added to the score" if of_heads else "By the distance"
        st.markdown(f"**{title}**")
        spec = by_head(shown.by_head, shown.unit, f"head {head}")
        st.vega_lite_chart(spec, height=CURVE_HEIGHT + 90, key="by_head")
    if of_heads:
        st.caption(
            f"On the left is head {head}, chosen in the sidebar, in the colours of its own range; "
            "on the right its line is the thick one."
        )


def _added(shown: Scheme, table: Tensor, count: int) -> None:
    left, right = widgets.side_by_side(1, 1)
    with left:
        _places("dimension", shown.title, "value", "positions_table", table)
        pair = number("Pair of dimensions", "dimensions", len(shown.pairs) - 1)
        st.vega_lite_chart(waves(shown.wave(pair)), height=CURVE_HEIGHT, key="waves")
        if shown.wavelengths:
            st.caption(f"One turn takes {three(shown.wavelengths[pair])} positions.")
    with right:
        title = "Dot product of two positions"
        _places("position", title, shown.unit, "products", shown.products)
        st.markdown("**The product by the distance of two positions**")
        spec = by_offset(shown.against_offset(), "product")
        st.vega_lite_chart(spec, height=CURVE_HEIGHT, key="by_offset")
    _hands(shown, count)


def _hands(shown: Scheme, count: int) -> None:
    """Some of the pairs as hands of a clock, fast ones first."""
    with st.container(width=widgets.WIDEST):
        place = number("Position", "place", count - 1, min(3, count - 1))
    last = len(shown.pairs) - 1
    some = sorted({round(step * last / (CLOCKS - 1)) for step in range(CLOCKS)})
    st.markdown(f"**The hands of {len(some)} pairs at position {place}**")
    hands = [(f"pair {pair}", [tuple(tip) for tip in shown.hand(pair).tolist()]) for pair in some]
    st.vega_lite_chart(clocks(hands, place), width="content", key="clocks")
    turns = {
        "sinusoidal": "Up is the sine, to the right the cosine: every hand turns at its own speed.",
        "rotary": "A hand is a pair of ones as it is turned: every pair turns at its own speed.",
    }
    text = turns.get(shown.name, "Up is the first of two neighbouring numbers of the vector.")
    st.caption(
        f"{len(some)} of {len(shown.pairs)} pairs, evenly spread. {text} Dots are the positions "
        "before."
    )


def _places(
    across: str, title: str, unit: str, key: str, values: Tensor, row: str = "position"
) -> None:
    """Something that every position has: positions down, dimensions or positions across."""
    st.markdown(f"**{title}**")
    matrix(
        values,
        [str(each) for each in range(values.shape[0])],
        [str(each) for each in range(values.shape[1])],
        key=key,
        scale="sequential" if unit == "bucket" else "diverging",
        row_name=row,
        column_name=across,
        sentence=f"{row.capitalize()} {{row}}, {across} {{column}}: {{value}}",
        unit=unit,
        height=_height(*values.shape),
    )


def _height(rows: int, columns: int) -> int:
    """A table of many dimensions has small cells, and is no higher than they need."""
    cell = min(7.0, WIDTH / columns)
    return max(LOWEST, min(MATRIX_HEIGHT, int(AROUND + rows * cell)))
