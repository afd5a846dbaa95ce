"""The form that edits the mask: a preset, a key masked for every query, or single cells."""

import streamlit as st
import torch

from explorer.app.choosing import draw_page_link
from explorer.app.context import PageContext
from explorer.app.controls import one_of, token, whole
from explorer.components.picker import cells
from explorer.inference.forward_pass import ForwardPass
from explorer.interventions.edits import HideKey, MaskCell, PresetMask
from explorer.text.token_labels import named_at, texts
from explorer.views.shared import widgets
from explorer.views.shared.edit_history import add_intervention, edit_button

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
PRESET, KEY, CELLS = "Preset", "One key", "Cell by cell"
MOST_PAINTED = 96
"""Tokens a side that a finger or a pointer can still hit."""


def draw_mask_form(context: PageContext, after: ForwardPass) -> None:
    """One of three ways to change which keys a query may attend to."""
    way = one_of("mask_how", (PRESET, KEY, CELLS))
    scope = one_of("mask_where", (THIS_LAYER, EVERY_LAYER))
    layer = context.choice.layer if scope == THIS_LAYER else None
    if way == PRESET:
        _draw_preset_form(context, layer)
    elif way == KEY:
        part = context.choice.part
        key = token("mask_key", after.columns(part), 0)
        label = "Mask it for every query"
        edit_button(context, HideKey(part, layer, key), label, "hide_key", type="primary")
    else:
        _draw_cells_form(context, after, layer)
    _draw_fully_masked(context, after)
    draw_page_link("masks", "What masks do to the scores")


def _draw_preset_form(context: PageContext, layer: int | None) -> None:
    part = context.choice.part
    is_cross = part == "decoder.cross_attn"
    if is_cross:
        st.text("Queries and keys are of two texts here, so only these presets make sense.")
    names = ["None", "Padding"] if is_cross else list(PRESETS)
    preset = PRESETS[one_of("mask_preset", names)]
    size = 1
    if preset in SIZED:
        size = whole("mask_size", width=140)
    edit = PresetMask(part, layer, preset, size)
    edit_button(context, edit, "Set the mask", "set_mask", type="primary")
    if preset == "padding":
        st.caption("The last tokens count as padding, as in a batch with a longer text.")


def _draw_cells_form(context: PageContext, after: ForwardPass, layer: int | None) -> None:
    at, opened, forward = context.choice, context.opened, context.forward
    rows, columns = after.rows(at.part), after.columns(at.part)
    allowed = after.mask(at.part, at.layer)

    def flip(query: int, key: int) -> MaskCell:
        return MaskCell(at.part, layer, query, key, not bool(allowed[query, key]))

    if max(allowed.shape) > MOST_PAINTED:
        st.text(f"With more than {MOST_PAINTED} tokens, choose the cell from lists.")
        with st.container(horizontal=True, vertical_alignment="bottom"):
            query = token("cell_query", rows, len(rows) - 1)
            key = token("cell_key", columns, 0)
            edit = flip(query, key)
            label = "Unmask" if edit.allowed else "Mask"
            edit_button(context, edit, label, "set_cell", type="primary")
        return
    weights = after.weights(at.part, at.layer, at.head)
    st.markdown(widgets.head_heading(context))
    st.caption("Click a cell to mask or unmask it. Colours are the weights of the chosen head.")
    cells(
        weights.masked_fill(~allowed, torch.nan),
        texts(rows),
        texts(columns),
        key="paint",
        title=widgets.head_title(context),
        selected=None,
        on_pick=lambda query, key: add_intervention(opened, forward, flip(query, key)),
        row_name="query",
        column_name="key",
        sentence="{row} attends to {column}: {value}",
        unit="weight",
        absent="masked",
        top=1.0,
    )


def _draw_fully_masked(context: PageContext, after: ForwardPass) -> None:
    """The queries that may attend to no key now, by name."""
    at = context.choice
    masked = (~after.mask(at.part, at.layer).any(-1)).nonzero()[:, 0].tolist()
    if not masked:
        return
    rows = after.rows(at.part)
    named = ", ".join(named_at(rows, query) for query in masked[:6])
    more = f" and {len(masked) - 6} more" if len(masked) > 6 else ""
    st.text(f"Every key is masked, so attention gives zeros: {named}{more}.")
