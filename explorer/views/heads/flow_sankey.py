"""Where a token's rollout comes from, layer by layer, as a Sankey diagram."""

import streamlit as st

from explorer.analysis import rollout
from explorer.app.panels import expander
from explorer.charts.sankey import EDGES_DRAWN, FlowEdge, rollout_sankey, strongest_edges
from explorer.charts.theme import palette
from explorer.components.chart import Table, plotly_chart
from explorer.inference.forward_pass import ForwardPass
from explorer.text.token_labels import texts

NUMBERS_HELD = 2_000_000
"""Of all layers together; more are not drawn."""


def draw_flow_sankey(forward: ForwardPass, part: str, layers: int, token: int) -> None:
    """An expander with the ways through the first so many layers to one token."""
    with expander("flow_sankey") as panel:
        if not panel.open:
            return
        tokens = texts(forward.rows(part))
        if layers * len(tokens) ** 2 > NUMBERS_HELD:
            st.caption("This text is too long to follow layer by layer; choose a lower layer.")
            return
        shares = rollout.edge_shares([*rollout.half_residual_layers(forward, part, layers)], token)
        edges = strongest_edges(shares)
        figure = rollout_sankey(edges, tokens, layers, palette(st.context.theme.type))
        table: Table = {
            "layer": [edge.layer for edge in edges],
            "from": [f"{edge.lower} {tokens[edge.lower]}" for edge in edges],
            "to": [f"{edge.upper} {tokens[edge.upper]}" for edge in edges],
            "share": [edge.share for edge in edges],
        }
        plotly_chart(figure, key="flow_edges", title="Rollout, layer by layer", table=table)
        st.caption(_caption(edges, layers))


def _caption(edges: list[FlowEdge], layers: int) -> str:
    drawn = [sum(edge.share for edge in edges if edge.layer == layer) for layer in range(layers)]
    return (
        "Attention rollout of the chosen token: the text at the left, the token after the last of "
        "these layers at the right. A band is the share of the token that passes through it; "
        "at least half of every token stays in its own row, the residual stream. "
        f"Drawn are at most the {EDGES_DRAWN} strongest bands of each layer, at least "
        f"{min(drawn):.0%} of the whole."
    )
