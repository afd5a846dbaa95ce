"""One attention, large, the way it was asked for: as a matrix, or as lines."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from explorer.analysis.attention_filters import Look, Shown, each_head, shown
from explorer.app.context import page_context
from explorer.app.controls import token_names
from explorer.app.progress import bar
from explorer.components import lines, matrix
from explorer.components.events import Place
from explorer.components.matrix import room
from explorer.export.figure_data import Taken
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import kept
from explorer.snippets import one_head
from explorer.text.token_labels import texts
from explorer.views.attention import display_options
from explorer.views.shared import export_panel, pinned, widgets

MOST_CELLS_IN_LINES = 1 << 22
"""Heads × rows × columns that are sent for the lines: 16 heads of 512 tokens."""


def as_matrix(forward: ForwardPass, look: Look) -> None:
    """The chosen head, or the heads of its layer combined: queries down, keys across."""
    at = page_context().choice
    words = forward.part(at.part).words
    made = picture(forward, look)

    places = made.row_groups, made.groups
    holds = pinned.now(forward)

    def hide(column: int) -> None:
        display_options.toggle_hidden(forward, at.part, made.groups[column])

    matrix(
        made.values,
        made.rows,
        made.columns,
        key="attention_head",
        allowed=made.allowed,
        row_name=words.row,
        column_name=words.column,
        sentence=made.sentence,
        unit=made.unit,
        height=room(len(made.rows), len(made.columns), widgets.MATRIX_HEIGHT),
        top=1.0 if _ends_at_one(look) else None,
        scaling="all" if look.scaling == "one" else look.scaling,
        log=look.log,
        hidden=made.hidden,
        cut=made.cut if look.mass < 100 else None,
        on_hide=hide,
        held=pinned.cell(holds, *places),
        on_hold=lambda cell: pinned.hold_cell(cell, *places),
    )
    widgets.notes([" ".join(made.notes)])
    pinned.way_on(holds)


def as_lines(forward: ForwardPass, look: Look) -> None:
    """Every head of the layer, drawn by its chip; or the heads combined, as one."""
    at = page_context().choice
    part = forward.part(at.part)
    if look.of == "head":
        heads = _heads_that_fit(forward, part.heads)
        made = each_head(forward, at.part, at.layer, look, heads)
        names = [f"head {head}" for head in heads]
        hues = [head / part.heads for head in heads]
        if len(heads) < part.heads:
            st.text(f"This text is long: only head {at.head} is drawn as lines.")
    else:
        made, hues = picture(forward, look), [0.0]
        heads, names = [], [display_options.of_how_many(look, part)]
    places = made.row_groups, made.groups
    holds = pinned.now(forward)
    chosen = set(pinned.drawn(forward))

    def choose(drawn: tuple[int, ...], token: Place | None) -> None:
        pinned.hold_token(holds, token, *places)
        if len(heads) > 1:
            pinned.draw([heads[place] for place in drawn], forward)

    values = made.values if made.values.dim() == 3 else made.values[None]
    lines(
        values,
        made.rows,
        made.columns,
        key="attention_lines",
        drawn=[place for place, head in enumerate(heads) if head in chosen] or [0],
        held=pinned.token(holds, *places),
        on_choice=choose,
        row_name=part.words.row,
        column_name=part.words.column,
        height=widgets.MATRIX_HEIGHT,
        names=names,
        hues=hues,
        top=1.0 if _ends_at_one(look) else None,
        scaling="all" if look.scaling == "one" else look.scaling,
        log=look.log,
    )
    widgets.notes([" ".join(made.notes)])
    pinned.way_on(holds)


def taken(forward: ForwardPass, look: Look) -> Taken:
    """What the large picture shows, with where it comes from, for who takes it away."""
    at = page_context().choice
    part, made = forward.part(at.part), picture(forward, look)
    names = token_names(forward.columns(at.part))
    hidden = {"hidden keys": ", ".join(names[key] for key in look.hidden)} if look.hidden else {}
    return Taken(
        values=made.values,
        rows=tuple(texts(made.rows)),
        columns=tuple(texts(made.columns)),
        title=f"{display_options.in_words(look, part, at.layer, at.head)} of {at.model}",
        unit=made.unit,
        row_name=part.words.row,
        column_name=part.words.column,
        allowed=made.allowed,
        about=export_panel.about() | {"shown as": display_options.summary(look)} | hidden,
        top=1.0 if _ends_at_one(look) else None,
        scaling="all" if look.scaling == "one" else look.scaling,
        log=look.log,
        hidden=made.hidden,
        note=" ".join((f"“{at.text}”.", f"{display_options.summary(look)}.", *made.notes)),
    )


def pasted(forward: ForwardPass, look: Look) -> str:
    """The lines that make the weights of the chosen head, before anything is done to them."""
    at = page_context().choice
    adjusted = _colours_aside(look) != Look()
    here = at.part, at.layer, at.head
    return one_head(forward, page_context().folder, *here, adjusted=adjusted)


def _colours_aside(look: Look) -> Look:
    """All of a look that changes numbers."""
    return replace(look, scaling="one", log=False)


def _ends_at_one(look: Look) -> bool:
    """Weights end at one; weighted by the length of values they have no end of their own."""
    return look.scaling == "one" and look.weighting == "plain"


def _heads_that_fit(forward: ForwardPass, heads: int) -> list[int]:
    at = page_context().choice
    cells = len(forward.rows(at.part)) * len(forward.columns(at.part))
    return list(range(heads)) if heads * cells <= MOST_CELLS_IN_LINES else [at.head]


def picture(forward: ForwardPass, look: Look) -> Shown:
    """The picture of one head is made each time; that of all heads of a layer is kept."""
    at = page_context().choice

    if look.of == "head":
        return shown(forward, at.part, at.layer, at.head, look)

    def make() -> Shown:
        with bar("Combining the heads") as report:
            return shown(forward, at.part, at.layer, at.head, look, report)

    layer = None if look.everywhere else at.layer
    key = ("look", at.text, at.pair, at.part, layer, _colours_aside(look))
    return kept(page_context().opened, key, make, lambda made: 2 * made.values.nbytes)
