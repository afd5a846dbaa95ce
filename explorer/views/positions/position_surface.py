"""What two positions give together, as a surface over both."""

from collections.abc import Sequence

import streamlit as st

from explorer.app.panels import expander
from explorer.charts.surfaces import surface_of_positions
from explorer.charts.theme import palette
from explorer.components.chart import Table, plotly_chart
from explorer.views.positions.scheme_figures import Side
from explorer.views.shared import widgets

CAPTIONS = {
    "product": "The dot product of the vectors of two positions, for every pair of them.",
    "cosine similarity": "The cosine similarity of the vectors of two positions, for every pair.",
    "bias": "What the chosen head adds to the score of a key, for every pair of positions.",
    "bucket": "The bucket of every pair of positions: a plateau is one bucket.",
}


def draw_position_surface(sides: Sequence[Side]) -> None:
    """An expander; nothing is sent while it is closed."""
    with expander("position_surface") as panel:
        if not panel.open:
            return
        colours = palette(st.context.theme.type)
        for place, side in zip(widgets.side_by_side(*[1] * len(sides)), sides, strict=True):
            shown = side.shown
            with place:
                others = [each.products for each in side.alike if each is not shown]
                half = len(sides) > 1
                figure = surface_of_positions(
                    shown.products, shown.unit, colours, others, half=half
                )
                if half:
                    side.draw_heading(side.pairs_title)
                count = len(shown.products)
                table: Table = {
                    "query position": [query for query in range(count) for _ in range(count)],
                    "key position": [*range(count)] * count,
                    shown.unit: shown.products.flatten().tolist(),
                }
                plotly_chart(
                    figure, key=f"{side.key}positions_3d", title=side.pairs_title, table=table
                )
                st.caption(f"{CAPTIONS[shown.unit]} The first {count} positions are shown.")
