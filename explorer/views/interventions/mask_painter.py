"""The mask painted: a preset, a key hidden from everybody, or single cells by a click."""

from __future__ import annotations

import streamlit as st
import torch

from explorer.app import url
from explorer.app.context import page_context
from explorer.app.controls import one_of, token
from explorer.catalog.entries import Opened
from explorer.components.cells import cells
from explorer.inference.forward_pass import ForwardPass
from explorer.interventions.edits import HideKey, MaskCell, PresetMask
from explorer.text.token_labels import text_of, texts
from explorer.views.shared import edit_history

THIS_LAYER, EVERY_LAYER = "This layer", "Every layer"
PRESETS = {
    "None": "none",
    "Causal": "causal",
    "Padding": "padding",
    "Sliding window": "window",
    "Prefix": "prefix",
    "Blocks": "blocks",
}
SIZED = ("padding", "window", "prefix", "blocks")
PRESET, KEY, CELLS = "A preset", "Hide a key", "Cell by cell"
MOST_PAINTED = 96
"""Tokens a side that a finger or a pointer can still hit."""
LARGEST_SIZE = 4_096


def mask(opened: Opened, forward: ForwardPass, changed: ForwardPass) -> None:
    """One of three ways to change who may look at whom."""
    way = one_of("How", "mask_how", (PRESET, KEY, CELLS))
    scope = one_of("Where", "mask_where", (THIS_LAYER, EVERY_LAYER))
    at = page_context().choice
    layer = at.layer if scope == THIS_LAYER else None
    {PRESET: _preset, KEY: _key, CELLS: _cells}[way](opened, forward, changed, layer)
    _blind(changed)


def _preset(opened: Opened, forward: ForwardPass, changed: ForwardPass, layer: int | None) -> None:
    part = page_context().choice.part
    if part == "decoder.cross_attn":
        st.text("Rows and columns are two texts here, so no key is ahead of a query or near it.")
    names = ["None", "Padding"] if part == "decoder.cross_attn" else list(PRESETS)
    name = PRESETS[one_of("Mask", "mask_preset", names)]
    size = 1
    if name in SIZED:
        size = int(
            st.number_input(
                "Tokens",
                min_value=1,
                max_value=LARGEST_SIZE,
                value=2,
                **url.bound("mask_size"),
                width=140,
            )
            or 1
        )
    edit = PresetMask(part, layer, name, size)
    edit_history.button(opened, forward, edit, "Set the mask", "set_mask", type="primary")
    if name == "padding":
        st.caption(
            "As in a batch that was filled up: the last tokens are taken for filler, and nobody "
            "looks at them."
        )


def _key(opened: Opened, forward: ForwardPass, changed: ForwardPass, layer: int | None) -> None:
    part = page_context().choice.part
    key = token("Key", "mask_key", changed.columns(part), 0)
    edit = HideKey(part, layer, key)
    edit_history.button(opened, forward, edit, "Hide it from everybody", "hide_key", type="primary")


def _cells(opened: Opened, forward: ForwardPass, changed: ForwardPass, layer: int | None) -> None:
    at = page_context().choice
    rows, columns = changed.rows(at.part), changed.columns(at.part)
    allowed = changed.mask(at.part, at.layer)

    def toggle(row: int, column: int) -> None:
        may = not bool(allowed[row, column])
        edit_history.make(opened, forward, MaskCell(at.part, layer, row, column, may))

    if max(allowed.shape) > MOST_PAINTED:
        st.text(f"More than {MOST_PAINTED} tokens are chosen from lists.")
        with st.container(horizontal=True, vertical_alignment="bottom"):
            row = token("Query", "cell_query", rows, len(rows) - 1)
            column = token("Key", "cell_key", columns, 0)
            may = not bool(allowed[row, column])
            edit = MaskCell(at.part, layer, row, column, may)
            label = "Allow" if may else "Forbid"
            edit_history.button(opened, forward, edit, label, "set_cell", type="primary")
        return
    weights = changed.weights(at.part, at.layer, at.head)
    st.caption("A click forbids a cell, or allows it. Numbers are the weights of the chosen head.")
    cells(
        weights.masked_fill(~allowed, torch.nan),
        texts(rows),
        texts(columns),
        key="paint",
        selected=None,
        on_pick=toggle,
        row_name="query",
        column_name="key",
        sentence="{row} looks at {column}: {value}",
        unit="weight",
        absent="may not look",
        top=1.0,
    )


def _blind(changed: ForwardPass) -> None:
    """Queries that may look nowhere now, by name."""
    at = page_context().choice
    blind = (~changed.mask(at.part, at.layer).any(-1)).nonzero()[:, 0].tolist()
    if not blind:
        return
    rows = changed.rows(at.part)
    named = ", ".join(f"“{text_of(rows[row])}” ({row})" for row in blind[:6])
    more = f" and {len(blind) - 6} more" if len(blind) > 6 else ""
    st.text(f"May look nowhere, so attention gives them zeros: {named}{more}.")
