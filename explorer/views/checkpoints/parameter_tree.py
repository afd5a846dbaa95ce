"""The parameter tree of the chosen model, or of a document's configuration."""

import streamlit as st

from explorer.app.context import PageContext
from explorer.app.controls import one_of
from explorer.catalog import model_descriptions, parameters
from explorer.catalog.opened_model import OpenModel
from explorer.catalog.parameters import ParameterNode
from explorer.charts.sankey_and_icicle import parameter_boxes, parameter_icicle
from explorer.charts.theme import palette
from explorer.components.chart import plotly_chart
from explorer.views.shared import tables, widgets
from explorer.views.shared.code_panel import Script, script
from models.presets import PRESETS

CHOSEN_MODEL = "Chosen model"
INDENT = "\u2003"
"""A space as wide as a letter, which Markdown does not take away."""
IDENTICAL = "Identical layers appear once, as “each”: the parts below add up to one layer."
CAPTION = (
    "A box is as tall as its share of all parameters; the boxes right of a part add up to it. "
    "Choose a part to enlarge it, and a part in the row on top to go back. "
    "Layers that are built alike are counted in one box. "
    "Parts without parameters of their own, such as tied weights, have no box."
)


def draw_parameters(context: PageContext, opened: OpenModel) -> Script:
    """Draw the parameter tree and the boxes of the chosen model or configuration."""
    figure = st.container()
    name = one_of("ledger", (CHOSEN_MODEL, *PRESETS), as_list=True, width=320)
    if name == CHOSEN_MODEL:
        node, lines = parameters.parameter_tree(opened.model), script(parameters_code, opened)
    else:
        config = PRESETS[name]
        st.markdown(model_descriptions.config_sentences(config))
        node, lines = parameters.parameter_tree_of(config), script(preset_code, name)
    with figure:
        boxes = [*parameter_boxes(node)]
        names, parents, parts, counts = (list(column) for column in zip(*boxes, strict=True))
        table = {"id": names, "inside": parents, "part": [part.name for part in parts]}
        plotly_chart(
            parameter_icicle(node, palette(st.context.theme.type)),
            key="parameter_boxes",
            title="Parameters by part",
            table={**table, "parameters": counts},
        )
        st.caption(CAPTION)
    draw_parameter_tree(node)
    return lines


def draw_parameter_tree(node: ParameterNode) -> None:
    """Draw every part below its module, with its formula in the config's names."""
    lines = [*parameters.tree_lines(node)]
    st.markdown(f"**{node.count:,} parameters** · each total is the sum of the rows below it")
    if any(part.times > 1 for _, part in lines):
        st.caption(IDENTICAL)
    with st.container(width=widgets.WIDEST):
        tables.static_table(
            {
                "part": [f"{INDENT * depth}{part.name}" for depth, part in lines],
                "formula": [part.symbols or part.note for _, part in lines],
                "in numbers": [part.numbers for _, part in lines],
                "parameters": tables.align_counts([part.count for _, part in lines]),
            },
            "Every part of the model, its number of parameters, and the formula of that number",
        )


def parameters_code(opened: OpenModel) -> None:
    node = parameters.parameter_tree(opened.model)
    for depth, part in parameters.tree_lines(node):
        print("  " * depth + part.name, part.symbols, part.count)


def preset_code(name: str) -> None:
    node = parameters.parameter_tree_of(PRESETS[name])
    for depth, part in parameters.tree_lines(node):
        print("  " * depth + part.name, part.symbols, part.count)
