"""Patching by dragging: a cell of another text's logit lens is dropped onto that of this text.

Source of the idea: the Patch Lens of the NDIF Workbench.
"""

from typing import Any

import streamlit as st

from explorer.analysis.circuits.default_corruption import default_corruption
from explorer.analysis.information_flow import is_computable
from explorer.analysis.logit_lens import can_change, likeliest_by_position, residual_streams
from explorer.analysis.output_change import has_words, last_streams
from explorer.app.context import PageContext
from explorer.app.controls import text_field
from explorer.inference.core_edits import NotApplicableError, source_pass
from explorer.inference.edited_pass import EditedPass
from explorer.interventions.address_text import MAX_PATCH_TEXT
from explorer.interventions.edits import Patch
from explorer.text.token_labels import named_at
from explorer.text.visible_text import literal
from explorer.views.forward_pass.lens_and_attribution import (
    changed_words,
    draw_lens,
    shown_positions,
)
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.edit_history import add_intervention, current_history, edit_button

NO_WORDS = "This model predicts no tokens, so its residual streams have no logit lens to drag from."
SHORT = "Your text is one token, so a patch can reach no other position: type a longer one."
HOW = "Drag a cell of the second text onto one of yours, or choose both."
REPLACES = "Its residual stream replaces that of your text there, after the same layer."
FROM = "The texts differ from {} on; before it a patch changes nothing at the same position."
BOTH_READ = " (its decoder reads your text's answer)"
COLOURED = (
    "In colour: what the interventions can have changed, later layers at the positions that may "
    "attend to a changed one. A frame marks a cell whose likeliest token has changed."
)


def draw_patch_lens(context: PageContext, edited: EditedPass, position: int) -> Script | None:
    """The grid of the second text to drag from; that of the text, or the result, to drop onto.

    Below the result stands the grid of the text as it was.
    """
    opened, forward = context.opened, context.forward
    if not has_words(opened.config) or sum(not token.special for token in forward.tokens) < 2:
        st.text(SHORT if has_words(opened.config) else NO_WORDS)
        return None
    of_text, beside = widgets.side_by_side(1, 1)
    others = (example for example in context.entry.examples if example != forward.text)
    usual = default_corruption(opened, forward.text) or next(others, "")
    with of_text:
        how: dict[str, Any] = {"placeholder": "Second text", "label_visibility": "collapsed"}
        text = text_field("lens_from", usual[:MAX_PATCH_TEXT], **how).strip()
    try:
        other = source_pass(opened, forward, text)
    except NotApplicableError as error:
        st.text(str(error))
        return None
    ours, theirs = (
        shown_positions(len(passed.last_stack_tokens), position) for passed in (forward, other)
    )
    stack, layers = last_streams(opened.config)

    def patch(layer: int, source: int, target: int) -> Patch:
        return Patch(f"{stack}.self_attn", layer, None, target, text, source)

    def drop(row: int, source: int, target: int) -> None:
        add_intervention(opened, forward, patch(layers - 1 - row, theirs[source], ours[target]))

    first, second = (passed.last_stack_tokens for passed in (other, forward))
    differ = [at for at in range(min(len(first), len(second))) if first[at].id != second[at].id]
    at = min(*differ[:1], position, len(first) - 1)
    source, target = (literal(named_at(tokens, at)) for tokens in (first, second))
    done = current_history()
    if not done.edits:
        label = f"Example: {source} of the second text in place of {target} of yours, layer 0"
        with of_text:
            edit_button(context, patch(0, at, at), label, "example_edit")
    later = (isinstance(edit, Patch) and edit.position >= at for edit in done.active)
    is_same = at in differ and forward.config.kind == "decoder" and all(later)
    beside.caption(f"{HOW} {FROM.format(target)}" if is_same else HOW)
    left, right = widgets.side_by_side(1, 1)
    with left:
        drag: dict[str, Any] = {"key": "drag_from", "drags": "from"}
        drag |= {"idle": f"Second text{BOTH_READ * bool(forward.source)}: drag from here"}
        title = f"{context.called} · Lens of the second text"
        draw_lens(context, other, position, title=title, column=-1, seen=at - theirs.start, **drag)
    is_coloured, looks = bool(edited.applied) and is_computable(forward), None
    if is_coloured:
        reach = can_change(edited.forward, edited.applied).tolist()
        both = zip(changed_words(opened, forward, edited.forward)[1:], reach, strict=True)
        looks = [[how if can else "muted" for how, can in zip(*row, strict=True)] for row in both]
    with right:
        idle = f"Your text{' with the interventions' * is_coloured}: drop here"
        onto: dict[str, Any] = {"column": -1, "carried": len(theirs), "on_drop": drop}
        onto |= {"idle": idle, "drags": "onto", "seen": at - ours.start}
        draw_lens(context, edited.forward if is_coloured else forward, position, looks, **onto)
    st.caption(COLOURED if is_coloured else REPLACES)
    if is_coloured:
        without: dict[str, Any] = {"idle": "Your text without them", "column": -1}
        draw_lens(context, forward, position, seen=at - ours.start, **without)
    return script(patched_lens_code, edited)


def patched_lens_code(edited: EditedPass) -> None:
    passed = edited.forward.trace
    for stream in residual_streams(passed)[1:]:  # after each layer
        probabilities, ids = likeliest_by_position(passed, stream, 1)
        print(ids[:, 0], probabilities[:, 0])  # by position
    print(can_change(edited.forward, edited.applied))  # a row per layer
