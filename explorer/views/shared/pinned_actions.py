"""What can be done at once to the cell that is held in a map of the changed pass."""

from __future__ import annotations

import streamlit as st

from explorer.app.context import page_context
from explorer.catalog.opened_model import Opened
from explorer.components.events import Place
from explorer.inference.forward_pass import ForwardPass
from explorer.interventions.edits import CutEdge, Edit, HideKey, MaskCell
from explorer.text.token_labels import text_of
from explorer.views.shared import edit_history, pinned
from explorer.views.shared.pinned import Held


def hold(place: Place | None) -> None:
    """For the callback of a map: every row and column is one token there."""
    pinned.hold(Held() if place is None else Held(*place))


def show(opened: Opened, forward: ForwardPass, changed: ForwardPass, holds: Held) -> None:
    """The held cell in words, and a button for each way to change it in the chosen layer."""
    at = page_context().choice
    if holds.query is None or holds.key is None:
        st.caption("Click a cell to hold it: then its edge can be cut, or its look forbidden.")
        return
    query, key = holds.query, holds.key
    may = bool(changed.mask(at.part, at.layer)[query, key])
    row, column = changed.rows(at.part)[query], changed.columns(at.part)[key]
    where = f"layer {at.layer}"
    edits: dict[str, Edit] = {
        f"Cut this edge in head {at.head}": CutEdge(at.part, at.layer, at.head, query, key),
        f"Cut it in every head of {where}": CutEdge(at.part, at.layer, None, query, key),
        f"Forbid this look in {where}": MaskCell(at.part, at.layer, query, key, False),
        f"Hide the key in {where}": HideKey(at.part, at.layer, key),
    }
    if not may:
        edits = {f"Allow this look in {where}": MaskCell(at.part, at.layer, query, key, True)}
    st.text(f"Held: “{text_of(row)}” ({query}) → “{text_of(column)}” ({key})")
    with st.container(horizontal=True, key="held_edits"):
        for number, (label, edit) in enumerate(edits.items()):
            edit_history.button(opened, forward, edit, label, f"held_edit_{number}")
