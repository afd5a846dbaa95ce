"""Patching by dragging: a cell of another text's logit lens, dropped onto the lens of this text.

Source of the idea: the Patch Lens of NDIF's Workbench.
"""

import streamlit as st

from explorer.analysis.circuits.default_corruption import default_corruption
from explorer.analysis.edit_reach import can_change
from explorer.analysis.information_flow import is_computable
from explorer.analysis.logit_lens import likeliest_by_position, residual_streams
from explorer.analysis.output_change import has_words, last_streams
from explorer.app import widget_state
from explorer.app.context import PageContext
from explorer.app.controls import text_field
from explorer.inference.core_edits import NotApplicableError, source_pass
from explorer.inference.edited_pass import EditedPass
from explorer.interventions.address_text import MAX_PATCH_TEXT
from explorer.interventions.edits import Patch
from explorer.views.forward_pass.lens_and_attribution import (
    changed_words,
    lens_board,
    shown_positions,
)
from explorer.views.overview.pass_picture import too_long
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.edit_history import add_intervention

NO_TOKENS = (
    "This model has no output head over tokens, so its residual streams have no likeliest tokens "
    "to drag: choose a language model."
)
SHORT_TEXT = "Your text is one token, so no other position can change: type a longer one."


def draw_patch_lens(context: PageContext, edited: EditedPass, position: int) -> Script | None:
    """Both texts' grids, the first to drag from and the second to drop onto, and the result."""
    opened, forward = context.opened, context.forward
    tokens = forward.last_stack_tokens
    if not has_words(opened.config):
        st.text(NO_TOKENS)
        return None
    if len(tokens) < 2:
        st.text(SHORT_TEXT)
        return None
    of_text, way = widgets.side_by_side(1, 1)
    with of_text:
        hint = {"placeholder": "Second text", "label_visibility": "collapsed"}
        text = text_field("lens_from", _usual(context), **hint).strip()
    way.caption(
        "Drag a cell of the left grid onto a position of the right one, or click both. Its "
        "residual stream replaces that of your text after the same layer."
    )
    try:
        other = source_pass(opened, forward, text)
    except NotApplicableError as error:
        st.text(str(error))
        return None
    if too_large := next((p for p in (forward, other) if not is_computable(p)), None):
        st.text(too_long(too_large))
        return None
    theirs = shown_positions(len(other.last_stack_tokens), position)
    ours = shown_positions(len(tokens), position)
    layers, called = last_streams(opened.config)[1], context.choice.called
    part = f"{last_streams(opened.config)[0]}.self_attn"

    def patch(row: int, source: int, target: int) -> None:
        place, from_place = ours[target], theirs[source]
        edit = Patch(part, layers - 1 - row, None, place, text, from_place)
        add_intervention(opened, forward, edit)

    left, right = widgets.side_by_side(1, 1)
    with left:
        lens_board(
            context,
            other,
            theirs,
            key="drag_from",
            title=f"{called} · Logit lens of the second text",
            idle="Second text: drag from here",
            drags="from",
        )
    with right:
        lens_board(
            context,
            forward,
            ours,
            key="drag_onto",
            title=f"{called} · Logit lens of your text",
            idle="Your text: drop here",
            drags="onto",
            carried=len(theirs),
            on_drop=patch,
        )
    _draw_result(context, edited, ours, position)
    return script(patched_lens_code, edited)


def _usual(context: PageContext) -> str:
    """The second text at first: your text with a word changed, else another example."""
    text = context.choice.text
    examples = (example for example in context.entry.examples if example != text)
    usual = default_corruption(context.opened, text) or next(examples, "")
    return usual[:MAX_PATCH_TEXT]


def _draw_result(context: PageContext, edited: EditedPass, ours: range, position: int) -> None:
    """The grid of the pass with all interventions, in colour where they can have changed it."""
    if not edited.applied:
        return
    reach = can_change(edited.forward, edited.applied).tolist()
    changed = changed_words(context.opened, context.forward, edited.forward)
    looks = [
        [look if can else "muted" for look, can in zip(*rows, strict=True)]
        for rows in zip(changed, reach, strict=True)
    ]
    lens_board(
        context,
        edited.forward,
        ours,
        looks,
        key="dragged",
        title=f"{context.choice.called} · Logit lens with the interventions",
        idle="Your text with the interventions; click a column to choose its position.",
        column=position - ours.start,
        on_pick_column=lambda column: widget_state.put("expected_at", ours[column]),
    )
    st.caption(
        "In colour: what the interventions can have changed, later layers at the positions that "
        "may attend to a changed one. A frame marks a cell whose likeliest token has changed."
    )


def patched_lens_code(edited: EditedPass) -> None:
    passed = edited.forward.trace
    for stream in residual_streams(passed)[1:]:  # after each layer
        probabilities, ids = likeliest_by_position(passed, stream, 1)
        print(ids[:, 0], probabilities[:, 0])  # by position
    print(can_change(edited.forward, edited.applied))  # a row per layer
