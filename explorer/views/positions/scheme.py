"""One scheme of positions: its table, dot products, waves, clock hands, and biases by distance."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st
from torch import Tensor

from explorer.analysis.position_schemes import PositionScheme, position_scheme
from explorer.app.context import PageContext
from explorer.app.controls import number, one_of
from explorer.catalog.opened_model import Opened
from explorer.charts.position_curves import head_curves, offset_curve, rotation_clocks, wave_curves
from explorer.components import matrix
from explorer.components.chart import chart
from explorer.snippets import positions_code
from explorer.text.number_format import three
from explorer.views.positions.missing_positions import NO_TABLE, draw_missing_positions
from explorer.views.positions.position_surface import draw_position_surface
from explorer.views.shared import widgets

SHOWN, CLOCKS = 48, 6
ODD = 7
OWN_WIDTH, ODD_WIDTH = "This model's width", f"An odd width, {ODD}"
CURVE_HEIGHT, MATRIX_HEIGHT, LOWEST = 260, 430, 180
WIDTH, AROUND = 490, 105
"""Pixels of half a screen, and of the labels and the legend around a matrix."""


def draw_scheme(context: PageContext, scheme: str) -> Callable[[], str] | None:
    """What every position gets, and how two positions compare; gives the code."""
    opened, at = context.opened, context.choice
    count = min(SHOWN, opened.config.max_len) if scheme == "learned" else SHOWN
    width = _choose_width(opened) if scheme == "sinusoidal" else opened.config.d_model
    shown = position_scheme(scheme, opened.model, count, at.head, at.part.split(".")[0], width)
    if shown is None:
        draw_missing_positions(context, scheme, NO_TABLE)
        return None
    if scheme == "none":
        st.caption("There is nothing to draw; choose “Permutation” to see what follows from it.")
        return None
    if shown.unit == "bucket":
        st.caption(
            "This model has no trained biases for distances; shown is the bucket of each distance, "
            "at this model's sizes."
        )
    st.caption(f"The first {count} positions are shown.")
    if shown.table is None:
        _draw_biases(shown, at.head)
    else:
        _draw_table(shown, shown.table, count)
    draw_position_surface(shown)
    here = (at.part, at.layer, at.head)
    return lambda: (
        positions_code.scheme(opened.config, context.folder, scheme, count, here, width) or ""
    )


def _choose_width(opened: Opened) -> int:
    """The model's own width, or an odd one, whose last sine has no cosine."""
    chosen = one_of("Width", "table_width", (OWN_WIDTH, ODD_WIDTH))
    width = opened.config.d_model if chosen == OWN_WIDTH else ODD
    if width % 2:
        half = width // 2
        st.caption(
            f"{width} dimensions are {half} pairs and a last sine without its cosine. The code "
            f"of the lecture handout fails here: it assigns {half + 1} cosines to {half} columns. "
            "With the unpaired sine, the dot product of two positions no longer depends on their "
            "distance alone."
        )
    return width


def _draw_biases(shown: PositionScheme, head: int) -> None:
    left, right = widgets.side_by_side(1, 1)
    of_heads = shown.unit == "bias"
    with left:
        title = f"Head {head}: query against key" if of_heads else "Bucket of query and key"
        _draw_matrix("key", title, shown.unit, "products", shown.products, row="query")
    with right:
        title = "Bias of every head by distance" if of_heads else "Bucket by distance"
        st.markdown(f"**{title}**")
        spec = head_curves(shown.by_head, shown.unit, f"head {head}")
        chart(spec, height=CURVE_HEIGHT + 90, key="by_head", title=title)
    if of_heads:
        st.caption(
            f"Left: head {head}, chosen in the sidebar, on a colour scale of its own. Right: its "
            "line is thick."
        )


def _draw_table(shown: PositionScheme, table: Tensor, count: int) -> None:
    left, right = widgets.side_by_side(1, 1)
    with left:
        _draw_matrix("dimension", shown.title, "value", "positions_table", table)
        pair = number("Pair of dimensions", "dimensions", len(shown.pairs) - 1)
        spec = wave_curves(shown.wave(pair))
        chart(spec, height=CURVE_HEIGHT, key="waves", title=f"Pair {pair} of dimensions")
        if shown.wavelengths:
            st.caption(f"One period takes {three(shown.wavelengths[pair])} positions.")
    with right:
        title = "Dot product of two positions"
        _draw_matrix("position", title, shown.unit, "products", shown.products)
        st.markdown("**Dot product by distance**")
        spec = offset_curve(shown.against_offset(), "product")
        chart(spec, height=CURVE_HEIGHT, key="by_offset", title="Dot product by distance")
    _draw_hands(shown, count)


def _draw_hands(shown: PositionScheme, count: int) -> None:
    """Some of the pairs as clock hands, fast ones first."""
    with st.container(width=widgets.WIDEST):
        place = number("Position", "place", count - 1, min(3, count - 1))
    last = len(shown.pairs) - 1
    some = sorted({round(step * last / (CLOCKS - 1)) for step in range(CLOCKS)})
    st.markdown(f"**Clock hands of {len(some)} pairs at position {place}**")
    hands = [(f"pair {pair}", [tuple(tip) for tip in shown.hand(pair).tolist()]) for pair in some]
    title = f"Pairs of dimensions at position {place}"
    chart(rotation_clocks(hands, place), width="content", key="clocks", title=title)
    turns = {
        "sinusoidal": "Up is the sine, right the cosine; every hand turns at its own speed.",
        "rotary": "A hand is a rotated pair of ones; every pair turns at its own speed.",
    }
    text = turns.get(shown.name, "Up is the first of two neighbouring dimensions.")
    st.caption(
        f"{len(some)} of {len(shown.pairs)} pairs, evenly spread. {text} Dots are earlier "
        "positions."
    )


def _draw_matrix(
    across: str, title: str, unit: str, key: str, values: Tensor, row: str = "position"
) -> None:
    """Positions down, dimensions or positions across."""
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
    """Pixels; a table of many dimensions has small cells, and is only as high as they need."""
    cell = min(7.0, WIDTH / columns)
    return max(LOWEST, min(MATRIX_HEIGHT, int(AROUND + rows * cell)))
