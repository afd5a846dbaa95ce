"""Both sides of a comparison on screen: their maps, how far apart they are, their outputs."""

from __future__ import annotations

import math

import streamlit as st
from torch import Tensor

from explorer.analysis.comparison import common_scale, map_divergence
from explorer.app.context import PageContext
from explorer.export.figure_data import FigureData
from explorer.text.number_format import three
from explorer.text.token_labels import texts
from explorer.views.shared import export_panel, widgets
from explorer.views.shared.map_pair import MapSide, draw_map_pair


def draw_compared_maps(first: MapSide, second: MapSide, model: str) -> Tensor | None:
    """Both on one scale, second − first, and how far apart they are; gives the difference.

    `model` is that of the first; another model is the title of the second.
    """
    is_same = first.forward.trace.model is second.forward.trace.model
    other = model if is_same else second.title
    top = common_scale(first.values, second.values)
    difference = draw_map_pair(first, second, top, models=(model, other))
    if difference is None:
        return None
    rows = first.allowed.any(-1) & second.allowed.any(-1)
    bits = map_divergence(first.values, second.values, rows)
    distance = (
        "There is no divergence: a weight is not a number, or no row attends to a key in both."
        if math.isnan(bits)
        else f"Jensen–Shannon divergence of their rows: {three(bits)} bits on average (0 is "
        "identical, 1 the most)."
    )
    st.text(f"{alignment(first, second)} {distance} Colour scale of both: 0 to {three(top)}.")
    return difference


def alignment(first: MapSide, second: MapSide) -> str:
    """How the cells of two maps of one shape correspond, in a sentence."""
    pairs = [
        *zip(first.rows, second.rows, strict=True),
        *zip(first.columns, second.columns, strict=True),
    ]
    different = sum(one.label != other.label for one, other in pairs)
    if not different:
        return "Both maps are over the same tokens."
    return (
        f"The maps are over different tokens ({different:,} of {len(pairs):,} labels differ), so "
        "cells are compared by position."
    )


def difference_to_export(
    context: PageContext, first: MapSide, second: MapSide, difference: Tensor
) -> FigureData:
    """The difference, and how both sides came to be; the offline page has all three maps."""
    at, head = context.choice, second.head
    words = second.forward.part(head.part).words
    about = export_panel.origin(context) | {"first": first.title, "second": second.title}
    if second.forward.text != at.text:
        about["the other sentence"] = second.forward.text
    if second.forward.pair != at.pair:
        about["sentences of the second"] = "the first one alone"
    about |= {
        "part of the second": head.part,
        "layer of the second": str(head.layer),
        "head of the second": str(head.head),
        **second.about,
    }
    return FigureData(
        values=difference,
        rows=tuple(texts(second.rows)),
        columns=tuple(texts(second.columns)),
        title=f"{second.title} − {first.title.lower()} of {at.model}",
        unit="change in weight",
        row_name=words.row,
        column_name=words.column,
        scale="diverging",
        allowed=first.allowed | second.allowed,
        about=about,
        note=f"“{at.text}”. {alignment(first, second)}",
    )


def draw_outputs(first: MapSide, second: MapSide) -> None:
    """The output of each side's pass and its notes; only the notes where only the head differs.

    With interventions the decoder reads the answer generated without them, so both answers
    already stand above.
    """
    mine, theirs = first.forward, second.forward
    same_input = mine.trace.model is theirs.trace.model and mine.text == theirs.text
    if mine is theirs or (mine.written and same_input):
        widgets.notes(mine.notes)
        return
    columns, keys = widgets.side_by_side(1, 1), ("answer_first", "answer_second")
    for column, forward, key in zip(columns, (mine, theirs), keys, strict=True):
        with column:
            widgets.draw_answer(forward, key=key)
            widgets.notes(forward.notes)
