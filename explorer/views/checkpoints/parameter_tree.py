"""The parameter ledger on the screen: of the chosen model, or of a document's configuration."""

from __future__ import annotations

import streamlit as st

from explorer.app.controls import one_of
from explorer.catalog import descriptions, parameters
from explorer.catalog.entries import Opened
from explorer.catalog.parameters import Node
from explorer.views.checkpoints.parameter_icicle import draw_parameter_icicle
from explorer.views.shared import tables, widgets
from models import TransformerConfig
from models.presets import PRESETS

CHOSEN = "the chosen model"
ALIKE = "Layers that are built alike stand once, as “each”: what is below adds up to one layer."


def show(opened: Opened) -> None:
    """A line for each part; the lines under one add up to it, and the first is the total."""
    picked = one_of("Ledger of", "ledger", (CHOSEN, *PRESETS), as_list=True, width=320)
    if picked == CHOSEN:
        node = parameters.ledger(opened.model)
        tree(node)
        draw_parameter_icicle(node)
        return
    config = PRESETS[picked]()
    st.markdown(descriptions.in_words(config))
    of_config(config)
    draw_parameter_icicle(parameters.of_config(config))


def of_config(config: TransformerConfig) -> None:
    """The ledger of a model that need not be there."""
    tree(parameters.of_config(config))


def tree(node: Node) -> None:
    """Every part under the one it belongs to, its formula in the names of the config's sizes."""
    lines = [*parameters.lines(node)]
    st.markdown(f"**{node.count:,} parameters** · what stands under a part adds up to it")
    if any(part.times > 1 for _, part in lines):
        st.caption(ALIKE)
    rows = [
        (depth, part.name, part.symbols or part.said, part.numbers, part.count)
        for depth, part in lines
    ]
    with st.container(width=widgets.WIDEST):
        tables.indented_table(
            rows,
            ("part", "formula", "in numbers", "parameters"),
            "Every part of the model, how many numbers it holds, and why so many",
        )
