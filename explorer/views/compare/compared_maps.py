"""Both sides of a comparison on screen: their maps, their divergence and their outputs."""

import math

import streamlit as st

from explorer.analysis.token_alignment import (
    common_scale,
    largest_change,
    map_divergence,
    pool_map,
)
from explorer.app.context import PageContext
from explorer.charts.figure_data import FigureData
from explorer.inference.forward_pass import ForwardPass
from explorer.text.number_format import three
from explorer.text.token_labels import label_at, texts
from explorer.text.visible_text import in_quotes
from explorer.views.shared import export_panel, widgets
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.map_pair import (
    AlignedMaps,
    MapGroups,
    MapSide,
    difference_title,
    draw_map_pair,
)

HeadPlace = tuple[str, int, int]
"""A part, a layer and a head."""


def draw_compared_maps(first: MapSide, second: MapSide) -> AlignedMaps | None:
    """Draw both maps on one scale, second − first, and their divergence.

    None if no two cells correspond.
    """
    top = common_scale(first.values, second.values)
    aligned = draw_map_pair(first, second, top)
    scale = f"Colour scale of both: 0 to {three(top)}."
    if aligned is None:
        st.text(scale)
        return None
    if 0 < (change := largest_change(aligned.difference)) < top:
        scale += f" That of the difference ends at ± {three(change)}."
    allowed = aligned.allowed[0].any(-1) & aligned.allowed[1].any(-1)
    maps, rows, columns = (aligned.first, aligned.second), aligned.rows, aligned.columns
    if any(columns.left_out):  # one more column for the keys that are left out of either
        mine, theirs = columns.left_out
        maps = (
            pool_map(first.values, rows.first, (*columns.first, mine)),
            pool_map(second.values, rows.second, (*columns.second, theirs)),
        )
    bits = map_divergence(*maps, allowed)
    distance = (
        "There is no divergence: a weight is not a number, or no row attends to a key in both."
        if math.isnan(bits)
        else f"Jensen–Shannon divergence of their rows: {three(bits)} bits on average (0 is "
        "identical, 1 the most)."
    )
    st.text(difference_title(first, second))
    st.text(f"{alignment(first, second, aligned)} {distance} {scale}")
    return aligned


def alignment(first: MapSide, second: MapSide, aligned: AlignedMaps) -> str:
    """How the cells of two maps correspond, in sentences."""
    if aligned.is_pooled:
        return _pooled(first, second, aligned) + _left_out(first, second, aligned)
    pairs = [
        *zip(first.rows, second.rows, strict=True),
        *zip(first.columns, second.columns, strict=True),
    ]
    different = sum(a.label != b.label for a, b in pairs)
    if not different:
        return "Both maps are over the same tokens."
    how = "by the characters they stand for" if aligned.columns.by_characters else "by position"
    return (
        f"The maps are over different tokens ({different:,} of {len(pairs):,} labels differ), so "
        f"cells are compared {how}."
    )


def _pooled(first: MapSide, second: MapSide, aligned: AlignedMaps) -> str:
    counts = f"{len(first.columns):,} and {len(second.columns):,} tokens"
    rows = (
        "averages the rows of its queries"
        if aligned.rows.by_characters
        else "takes the rows by position"
    )
    return (
        f"The same text is cut differently, into {counts}, so the difference is over "
        f"{len(aligned.columns.labels):,} groups of tokens, whole pieces that begin and end at the "
        f"same letter in both. It adds up the weights of a group's keys and {rows}."
    )


def _left_out(first: MapSide, second: MapSide, aligned: AlignedMaps) -> str:
    """Which tokens have no counterpart on the other side, and what that does to the numbers."""
    sides = ("first", first.columns), ("second", second.columns)
    named = [
        f"{', '.join(in_quotes(label_at(tokens, at)) for at in places)} of the {name} map"
        for (name, tokens), places in zip(sides, aligned.columns.left_out, strict=True)
        if places
    ]
    if not named:
        return ""
    return (
        f" Left out, as the other map has no such token: {' and '.join(named)}; their "
        "weight is in no cell, and the divergence counts it as one more key."
    )


def difference_to_export(
    context: PageContext, first: MapSide, second: MapSide, aligned: AlignedMaps
) -> FigureData:
    """The difference, with what both sides are; the offline page has all three maps."""
    at = context.choice
    about = export_panel.origin(context) | {"first": first.title, "second": second.title}
    if second.forward.text != at.text:
        about["the other sentence"] = second.forward.text
    if second.forward.pair != at.pair:
        about["sentences of the second"] = "the first one alone"
    about |= {
        "part of the second": second.part,
        "layer of the second": str(second.layer),
        "head of the second": str(second.head),
        **second.about,
    }
    how = alignment(first, second, aligned)
    if aligned.is_pooled:
        about["rows and columns"] = how
    return FigureData(
        values=aligned.difference,
        rows=tuple(texts(aligned.rows.labels)),
        columns=tuple(texts(aligned.columns.labels)),
        title=difference_title(first, second),
        unit="change in weight",
        scale="diverging",
        allowed=aligned.allowed[0] | aligned.allowed[1],
        about=about,
        note=f"{in_quotes(at.text)}. {how}",
    )


def draw_outputs(first: MapSide, second: MapSide) -> None:
    """Draw the output and notes of each side's pass; only the notes where only the head differs.

    With interventions, the decoder reads the answer generated without them, so both answers are
    already on screen.
    """
    mine, theirs = first.forward, second.forward
    same_input = mine.trace.model is theirs.trace.model and mine.text == theirs.text
    if mine is theirs or (mine.output_tokens and same_input):
        widgets.notes(mine.notes)
        return
    columns, keys = widgets.side_by_side(1, 1), ("answer_first", "answer_second")
    for column, forward, key in zip(columns, (mine, theirs), keys, strict=True):
        with column:
            widgets.draw_answer(forward, key=key)
            widgets.notes(forward.notes)


def compared_code(first: MapSide, second: MapSide, aligned: AlignedMaps | None) -> Script:
    """The code of both maps, and of their difference if their cells correspond."""
    sides = first.forward, second.forward, first.place, second.place
    if aligned is None:
        return script(both_code, *sides)
    if aligned.groups is None:
        return script(difference_code, *sides)
    return script(groups_code, *sides, *aligned.groups)


def both_code(
    first: ForwardPass, second: ForwardPass, first_head: HeadPlace, second_head: HeadPlace
) -> None:
    # They are over different tokens, so they have no difference.
    print(first.weights(*first_head), second.weights(*second_head))


def difference_code(
    first: ForwardPass, second: ForwardPass, first_head: HeadPlace, second_head: HeadPlace
) -> None:
    first_map, second_map = first.weights(*first_head), second.weights(*second_head)
    weights = second_map - first_map
    print(weights)  # a row per query, a column per key


def groups_code(
    first: ForwardPass,
    second: ForwardPass,
    first_head: HeadPlace,
    second_head: HeadPlace,
    first_groups: MapGroups,
    second_groups: MapGroups,
) -> None:
    first_map, second_map = first.weights(*first_head), second.weights(*second_head)
    weights = pool_map(second_map, *second_groups) - pool_map(first_map, *first_groups)
    print(weights)  # a row per group of queries, a column per group of keys
