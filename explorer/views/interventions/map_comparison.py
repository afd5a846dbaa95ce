"""The chosen head's maps before and after, and interventions on their pinned cell."""

from __future__ import annotations

from functools import partial

import streamlit as st

from explorer.analysis.comparison import largest_change
from explorer.app.context import PageContext
from explorer.components.events import Place
from explorer.inference.edited_pass import EditedPass
from explorer.inference.forward_pass import ForwardPass
from explorer.interventions.edits import (
    AblateAttention,
    AblateHead,
    AblateMlp,
    CutEdge,
    HideKey,
    Intervention,
    MaskCell,
)
from explorer.snippets import Head
from explorer.snippets.edits_code import before_after_lines
from explorer.text.token_labels import named_at
from explorer.views.interventions.many_passes import CodeLines
from explorer.views.shared import pinned, widgets
from explorer.views.shared.edit_history import edit_button
from explorer.views.shared.map_pair import MapSide, draw_map_pair
from explorer.views.shared.pinned import Pinned

ABLATIONS = AblateHead, AblateAttention, AblateMlp
ABLATED = " An ablated output changes what later layers read, not the weights of its own layer."


def draw_maps(
    context: PageContext,
    before: EditedPass,
    after: EditedPass,
    position: int,
    tracked: int | None,
) -> CodeLines:
    """Both maps on one scale, and the difference around zero.

    Gives the lines that make them, the output at this position, and the change of the output.
    """
    at, held = context.choice, pinned.current_pin(context, after.forward)
    st.markdown(f"{widgets.head_heading(context)} · before, after and after − before")
    heads = [
        Head(each.forward, context.folder, at.part, at.layer, at.head, each.core_edits)
        for each in (before, after)
    ]
    aligned = draw_map_pair(
        MapSide("Before", heads[0]),
        MapSide("After", heads[1]),
        1.0,
        models=(at.model, at.model),
        keys=("map_before", "map_after"),
        title="After − before",
        pinned=None if held.query is None or held.key is None else (held.query, held.key),
        on_pin=_pin,
    )
    _draw_cell_actions(context, after.forward, held)
    if aligned is not None and not largest_change(aligned.difference):
        changed = set(after.applied) ^ set(before.applied)
        why = ABLATED if any(isinstance(edit, ABLATIONS) for edit in changed) else ""
        st.caption(f"The attention weights of this head are unchanged.{why}")
    here = at.part, at.layer, at.head
    return partial(before_after_lines, before, after, context.folder, here, position, tracked)


def _pin(place: Place | None) -> None:
    """For the callback of a map: every row and column is one token there."""
    pinned.pin(Pinned() if place is None else Pinned(*place))


def _draw_cell_actions(context: PageContext, after: ForwardPass, held: Pinned) -> None:
    """The pinned cell in words, and a button for each intervention on it in the chosen layer."""
    at, query, key = context.choice, held.query, held.key
    if query is None or key is None:
        st.caption("Click a cell to pin it: its edge can then be cut, or the cell masked.")
        return
    where = f"layer {at.layer}"
    edits: dict[str, Intervention] = {
        f"Cut this edge in head {at.head}": CutEdge(at.part, at.layer, at.head, query, key),
        f"Cut it in every head of {where}": CutEdge(at.part, at.layer, None, query, key),
        f"Mask this cell in {where}": MaskCell(at.part, at.layer, query, key, False),
        f"Mask the key in {where}": HideKey(at.part, at.layer, key),
    }
    if not after.mask(at.part, at.layer)[query, key]:
        edits = {f"Unmask this cell in {where}": MaskCell(at.part, at.layer, query, key, True)}
    row, column = named_at(after.rows(at.part), query), named_at(after.columns(at.part), key)
    st.text(f"Pinned: {row} → {column}")
    with st.container(horizontal=True, key="held_edits"):
        for number, (label, edit) in enumerate(edits.items()):
            edit_button(context, edit, label, f"held_edit_{number}")
