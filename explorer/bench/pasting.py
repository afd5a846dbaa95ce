"""The lines of the changed passes and of one stage of a pass, as they are chosen on the page."""

from __future__ import annotations

import streamlit as st

from explorer import session
from explorer.analysis.faithfulness import STEPS
from explorer.analysis.walk import stages_of
from explorer.bench.grid_of_changes import OFF, PATCHED, THIS_HEAD
from explorer.bench.walk_choices import FOLDED, token_of
from explorer.edits_in_core import Misfit, same_length
from explorer.library import Opened
from explorer.reading import Reading
from explorer.rereading import Edited
from explorer.snippets import changing, whole

NONE = "# Nothing is shown, so there are no lines that make it.\n"


def every_head(opened: Opened, passed: Edited, place: int) -> str:
    """KL without each head of the chosen layer, or with another text's."""
    if opened.config.head == "none":
        return NONE
    at, other = session.choice(), []
    if st.session_state.get("heads_are", OFF) == PATCHED:
        text = (st.session_state.get("heads_from") or "").strip()
        try:
            other = [same_length(opened, passed.reading, at.part, text)]
        except Misfit:
            return NONE
    here = at.part, at.layer
    return changing.every_head(passed.reading, session.folder(), here, place, passed.in_core, other)


def cuts(opened: Opened, passed: Edited, place: int) -> str:
    """KL after the strongest edges are cut, at the counts that are drawn."""
    if opened.config.head == "none":
        return NONE
    at = session.choice()
    own = st.session_state.get("edges_of", THIS_HEAD) == THIS_HEAD
    part = passed.reading.part(at.part)
    heads = [at.head] if own else range(part.heads)
    every = [passed.reading.weights(at.part, at.layer, head) for head in heads]
    edges = sum(int(weights.count_nonzero()) for weights in every)
    counts = sorted({*(step for step in STEPS if step < edges), edges} - {0})
    here = at.part, at.layer, at.head if own else None
    return changing.cuts(passed.reading, session.folder(), here, place, counts, passed.in_core)


def stage(reading: Reading) -> str:
    """The stage of the whole pass that is shown, for the chosen token of the last stack."""
    made = {each.name: each for each in stages_of(reading.config)}
    name = str(FOLDED.texts().get("stage") or "")
    shown = made.get(name, next(iter(made.values())))
    stack = reading.config.stacks[-1]
    token = token_of(stack, len(reading.source if stack == "encoder" else reading.target))
    return whole.stage(reading, session.folder(), shown, session.choice().head, token)
