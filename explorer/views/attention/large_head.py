"""The large head with its display options: as a matrix, as lines, as tokens; and its export."""

from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from explorer.analysis.adjusted_weights import (
    ALL,
    AdjustedWeights,
    DisplayOptions,
    adjust_head,
    adjust_heads,
)
from explorer.analysis.map_summary import head_of_cell, summary_of
from explorer.analysis.query_key import strongest_cell
from explorer.analysis.thumbnails import thumbnails_of
from explorer.app.context import PageContext
from explorer.app.controls import token_names
from explorer.app.progress import bar
from explorer.app.session import redraw
from explorer.catalog.attention_parts import head_title, map_title
from explorer.charts.figure_data import FigureData
from explorer.components.events import Place
from explorer.components.inspect import inspect
from explorer.components.lines import lines
from explorer.components.matrix import Head, matrix
from explorer.components.picker import EveryHead
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import cached
from explorer.text.token_labels import texts
from explorer.text.visible_text import in_quotes
from explorer.views.attention import display_options
from explorer.views.attention.display_options import (
    combined_title,
    heads_title,
    layer_title,
    options_summary,
)
from explorer.views.shared import export_panel, pinned, widgets
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.pinned import PinnedCell

MOST_CELLS_IN_LINES = 1 << 22
"""Heads × rows × columns that are sent for the lines: 16 heads of 512 tokens."""
HALVES_SCALES = (
    "Each half of a token has its own colour scale here; the chosen one applies to the other views."
)


def every_head(context: PageContext) -> EveryHead | None:
    """All heads of the chosen attention under one name, if the overview has every weight."""
    at, small = context.choice, thumbnails_of(context.forward, context.choice.part)
    if not small.digest:
        return None
    of = f"{at.model} {at.part} {small.digest}"
    return EveryHead(of, (map_title(context.called, at.part, "Layer "), ", head "))


def raw_head(context: PageContext, options: DisplayOptions) -> Head | None:
    """The chosen head, if its raw weights are drawn; else None."""
    every, at = every_head(context), context.choice
    if every is None or replace(options, log=False) != DisplayOptions():
        return None
    return every.of, at.layer, at.head


def draw_matrix(context: PageContext, options: DisplayOptions) -> None:
    """The chosen head, or several combined: queries down, keys across."""
    weights = adjusted_weights(context, options)
    groups = weights.row_groups, weights.groups
    cell = pinned.current_pin(context)

    def hide(column: int) -> None:
        display_options.toggle_hidden_keys(context, weights.groups[column])
        redraw()  # the whole page, since the options are above

    matrix(
        weights.values,
        weights.rows,
        weights.columns,
        key="attention_head",
        allowed=weights.allowed,
        sentence=weights.sentence,
        title=heads_title(context, options),
        unit=weights.unit,
        hidden=weights.hidden,
        cut=weights.cut if options.mass < 100 else None,
        on_hide=hide,
        pinned=pinned.pinned_cell(cell, *groups),
        on_pin=lambda place: pinned.pin_cell(place, *groups),
        head=raw_head(context, options),
        **_colours(options),
    )
    _draw_below(context, cell, " ".join(weights.notes))


def draw_lines(context: PageContext, options: DisplayOptions) -> None:
    """Every head of the layer, each with its chip; or the heads combined, as one."""
    at, part = context.choice, context.part
    heads = _heads_that_fit(context) if options.heads == "one" else []
    if heads:
        weights = adjust_heads(context.forward, at.part, at.layer, options, heads)
        values, names = weights.values, [f"head {head}" for head in heads]
        if len(heads) < part.heads:
            st.text(f"Long text: only head {at.head} is drawn as lines.")
    else:
        weights = adjusted_weights(context, options)
        values, names = weights.values[None], [combined_title(context, options)]
    groups = weights.row_groups, weights.groups
    cell = pinned.current_pin(context)
    chosen = set(pinned.drawn_heads(context))

    def choose(places: tuple[int, ...], token: Place | None) -> None:
        pinned.pin_token(cell, token, *groups)
        if len(heads) > 1:
            pinned.draw_heads([heads[place] for place in places], context)

    lines(
        values,
        weights.rows,
        weights.columns,
        key="attention_lines",
        title=layer_title(context, options),
        drawn=[place for place, head in enumerate(heads) if head in chosen] or [0],
        pinned=pinned.pinned_token(cell, *groups),
        on_choice=choose,
        names=names,
        hues=[head / part.heads for head in heads] or [0.0],
        figures=partial(line_figures, context, options),
        **_colours(options),
    )
    _draw_below(context, cell, " ".join(weights.notes))


def draw_token_view(context: PageContext, options: DisplayOptions) -> None:
    """Each token in two halves: what it attends to, and what attends to it.

    Cross-attention has two strips of tokens, and so has one sentence of a pair over the other.
    """
    weights = adjusted_weights(context, options)
    groups = weights.row_groups, weights.groups
    cell = pinned.current_pin(context)
    usual = PinnedCell(strongest_cell(context.forward, *context.choice.place)[0])
    is_one_strip = context.choice.part.endswith("self_attn") and weights.rows == weights.columns
    inspect(
        weights.values,
        weights.rows,
        weights.columns,
        key="attention_tokens",
        title=heads_title(context, options),
        allowed=weights.allowed,
        same=is_one_strip,
        unit=weights.unit,
        pinned=pinned.pinned_token(cell if str(cell) else usual, *groups, one_strip=is_one_strip),
        on_pin=lambda token: pinned.pin_token(cell, token, *groups),
        figures=partial(head_figures, context, options),
    )
    own = [HALVES_SCALES] if options != _without_colours(options) else []
    _draw_below(context, cell, *weights.notes, *own)


def adjusted_weights(context: PageContext, options: DisplayOptions) -> AdjustedWeights:
    """The matrix of one head, computed each time, or of several heads combined, which is cached."""
    at, forward = context.choice, context.forward
    if options.heads == "one":
        return adjust_head(forward, *at.place, options)

    def make() -> AdjustedWeights:
        with bar("Combining the heads") as report:
            return adjust_head(forward, *at.place, options, report)

    layer = None if options.all_layers else at.layer
    key = ("adjusted", at.text, at.pair, at.part, layer, _without_colours(options))
    return cached(context.opened, key, make, lambda weights: 2 * weights.values.nbytes)


def head_figures(context: PageContext, options: DisplayOptions) -> list[FigureData]:
    """The figure of the matrix, with its origin, for the export."""
    weights = adjusted_weights(context, options)
    return [_figure(context, options, heads_title(context, options), weights)]


def line_figures(context: PageContext, options: DisplayOptions) -> list[FigureData]:
    """The figures of the lines: the chosen head, then the others of its layer; or all combined."""
    at, heads = context.choice, _heads_that_fit(context)
    if options.heads != "one":
        return head_figures(context, options)
    return [
        _figure(
            context,
            options,
            head_title(context.called, at.part, at.layer, head),
            adjust_head(context.forward, at.part, at.layer, head, options),
        )
        for head in sorted(heads, key=lambda head: head != at.head)
    ]


def _figure(
    context: PageContext, options: DisplayOptions, title: str, weights: AdjustedWeights
) -> FigureData:
    at = context.choice
    summary = options_summary(options)
    about = export_panel.origin(context) | {"shown as": summary}
    if options.hidden:
        names = token_names(context.forward.columns(at.part))
        about["hidden keys"] = ", ".join(names[key] for key in options.hidden)
    return FigureData(
        values=weights.values,
        rows=tuple(texts(weights.rows)),
        columns=tuple(texts(weights.columns)),
        title=title,
        unit=weights.unit,
        allowed=weights.allowed,
        about=about,
        hidden=weights.hidden,
        note=" ".join((f"{in_quotes(at.text)}.", *[f"{summary}."] * bool(summary), *weights.notes)),
        **_colours(options),
    )


FIGURES = {
    "attention_head": head_figures,
    "attention_lines": line_figures,
    "attention_tokens": head_figures,
}
"""By the key of a view, the function that makes its figures for the export."""


def head_caption(context: PageContext, options: DisplayOptions) -> str:
    """A summary of one head's map as it is drawn.

    Empty if rows are incomplete or their first key is hidden; a note says what is hidden.
    """
    numbers, title = _without_colours(options), heads_title(context, options)
    if numbers == DisplayOptions():
        return f"{title}, raw attention weights. {widgets.head_summary(context)}"
    is_whole = (options.heads, options.weighting, options.sentences) == ("one", "plain", ALL)
    if not is_whole or options.mass < 100 or 0 in options.hidden:
        return ""
    weights = adjusted_weights(context, options)
    visible = weights.allowed & (weights.values.sum(-1, keepdim=True) > 0)
    visible[:, list(weights.hidden)] = False
    summary = summary_of(weights.values, visible, weights.rows, weights.columns, weights.sentence)
    return f"{title}, as drawn. {summary}" if summary else ""


def head_lines(context: PageContext, options: DisplayOptions) -> Script:
    """The code of the chosen head's weights, with the display options that change numbers."""
    at, options = context.choice, _without_colours(options)
    head = context.forward, *at.place
    if options == DisplayOptions():
        return script(weights_code, *head)
    return script(adjusted_code, *head, options)


def weights_code(forward: ForwardPass, part: str, layer: int, head: int) -> None:
    weights = forward.weights(part, layer, head)
    print(weights)  # a row per query, a column per key


def adjusted_code(
    forward: ForwardPass, part: str, layer: int, head: int, options: DisplayOptions
) -> None:
    weights = adjust_head(forward, part, layer, head, options).values
    print(weights)  # a row per query, a column per key


def _draw_below(context: PageContext, cell: PinnedCell, *notes: str) -> None:
    small = thumbnails_of(context.forward, context.choice.part)
    query, key, exact, allowed = cell.query, cell.key, small.exact, small.allowed
    if query is not None and key is not None and exact is not None and allowed is not None:
        notes = (*notes, head_of_cell(exact, allowed, query, key))
    widgets.notes(filter(None, notes))
    pinned.links_from(cell)


def _without_colours(options: DisplayOptions) -> DisplayOptions:
    """The options that change numbers."""
    return replace(options, scaling="one", log=False)


def _colours(options: DisplayOptions) -> dict[str, Any]:
    """The colours of weights end at 1; of weights times value norms they end at the largest."""
    ends_at_one = options.scaling == "one" and options.weighting == "plain"
    return {
        "top": 1.0 if ends_at_one else None,
        "scaling": "all" if options.scaling == "one" else options.scaling,
        "log": options.log,
    }


def _heads_that_fit(context: PageContext) -> list[int]:
    at, forward, heads = context.choice, context.forward, context.part.heads
    cells = len(forward.rows(at.part)) * len(forward.columns(at.part))
    return list(range(heads)) if heads * cells <= MOST_CELLS_IN_LINES else [at.head]
