"""The lines of the changed passes and of one stage of a pass, as they are chosen on the page."""

from __future__ import annotations

import streamlit as st

from explorer.analysis.faithfulness import STEPS
from explorer.analysis.forward_pass.pass_stages import stages_of
from explorer.app.context import page_context
from explorer.catalog.opened_model import Opened
from explorer.inference.edited_pass import Edited
from explorer.inference.forward_pass import ForwardPass
from explorer.interventions.core_edits import Misfit, same_length
from explorer.snippets import edits_code, forward_pass_code
from explorer.views.interventions.head_grid import OFF, PATCHED, THIS_HEAD
from explorer.views.shared.pass_position import FOLDED, token_of

NONE = "# Nothing is shown, so there are no lines that make it.\n"


def every_head(opened: Opened, passed: Edited, place: int) -> str:
    """KL without each head of the chosen layer, or with another text's."""
    if opened.config.head == "none":
        return NONE
    at, other = page_context().choice, []
    if st.session_state.get("heads_are", OFF) == PATCHED:
        text = (st.session_state.get("heads_from") or "").strip()
        try:
            other = [same_length(opened, passed.forward, at.part, text)]
        except Misfit:
            return NONE
    here = at.part, at.layer
    return edits_code.every_head(
        passed.forward, page_context().folder, here, place, passed.in_core, other
    )


def cuts(opened: Opened, passed: Edited, place: int) -> str:
    """KL after the strongest edges are cut, at the counts that are drawn."""
    if opened.config.head == "none":
        return NONE
    at = page_context().choice
    own = st.session_state.get("edges_of", THIS_HEAD) == THIS_HEAD
    part = passed.forward.part(at.part)
    heads = [at.head] if own else range(part.heads)
    every = [passed.forward.weights(at.part, at.layer, head) for head in heads]
    edges = sum(int(weights.count_nonzero()) for weights in every)
    counts = sorted({*(step for step in STEPS if step < edges), edges} - {0})
    here = at.part, at.layer, at.head if own else None
    return edits_code.cuts(
        passed.forward, page_context().folder, here, place, counts, passed.in_core
    )


def stage(forward: ForwardPass) -> str:
    """The stage of the whole pass that is shown, for the chosen token of the last stack."""
    made = {each.name: each for each in stages_of(forward.config)}
    name = str(FOLDED.texts().get("stage") or "")
    shown = made.get(name, next(iter(made.values())))
    stack = forward.config.stacks[-1]
    token = token_of(stack, len(forward.source if stack == "encoder" else forward.target))
    return forward_pass_code.stage(
        forward, page_context().folder, shown, page_context().choice.head, token
    )
