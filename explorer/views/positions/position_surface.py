"""What two positions give together, as a surface over both."""

from __future__ import annotations

import streamlit as st

from explorer.analysis.position_schemes import PositionScheme
from explorer.charts.surface import surface_of_positions
from explorer.charts.theme import palette
from explorer.components.chart import Table, plotly_chart

CAPTIONS = {
    "product": "The dot product of the vectors of two positions, for every pair of them.",
    "bias": "What the chosen head adds to the score of a key, for every pair of positions.",
    "bucket": "The bucket of every pair of positions: a plateau is one bucket.",
}


def draw_position_surface(shown: PositionScheme) -> None:
    """An expander; nothing is sent while it is closed."""
    with st.expander(
        "Surface over two positions", key="position_surface", on_change="rerun"
    ) as panel:
        if not panel.open:
            return
        colours = palette(st.context.theme.type)
        figure = surface_of_positions(shown.products, shown.unit, colours)
        count = len(shown.products)
        table: Table = {
            "query position": [query for query in range(count) for _ in range(count)],
            "key position": [*range(count)] * count,
            shown.unit: shown.products.flatten().tolist(),
        }
        title = f"{shown.unit.capitalize()} of every two positions"
        plotly_chart(figure, key="positions_3d", title=title, table=table)
        st.caption(f"{CAPTIONS[shown.unit]} The first {count} positions are shown.")
