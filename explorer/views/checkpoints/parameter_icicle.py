"""The parameter tree as an icicle."""

import streamlit as st

from explorer.app.panels import expander
from explorer.catalog.parameters import ParameterNode
from explorer.charts.icicle import parameter_boxes, parameter_icicle
from explorer.charts.theme import palette
from explorer.components.chart import Table, plotly_chart

CAPTION = (
    "A box is as tall as its share of all parameters; the boxes right of a part add up to it. "
    "A click on a part enlarges it. Of layers that are built alike, all are counted in one box. "
    "Parts without parameters of their own, such as tied weights, have no box."
)


def draw_parameter_icicle(node: ParameterNode) -> None:
    """An expander; nothing is sent while it is closed."""
    with expander("parameter_icicle") as panel:
        if not panel.open:
            return
        figure = parameter_icicle(node, palette(st.context.theme.type))
        boxes = [*parameter_boxes(node)]
        table: Table = {
            "id": [name for name, _, _, _ in boxes],
            "inside": [parent for _, parent, _, _ in boxes],
            "part": [part.name for _, _, part, _ in boxes],
            "parameters": [count for _, _, _, count in boxes],
        }
        plotly_chart(figure, key="parameter_boxes", title="Parameters by part", table=table)
        st.caption(CAPTION)
