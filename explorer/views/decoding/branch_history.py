"""The branches of a reader: in the address, one set for each text and model, with undo."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from explorer.app.context import page_context
from explorer.app.folded_choices import Folded
from explorer.app.messages import say
from explorer.catalog.opened_model import Opened
from explorer.inference.branches import Branches, from_text
from explorer.inference.continuation import Start, ends

WRITTEN = Folded("branches", {"branches": ""})
UNFIT = (
    "The branches in the address do not fit this model and this text, so writing begins anew: "
    "draw a token, or choose one."
)


def now(opened: Opened, start: Start) -> Branches:
    """What was written behind this text; those of another text or model come back with it."""
    state, at = st.session_state, page_context().choice
    place, is_new = (at.model, at.text), "_branches_of" not in state
    others = state.setdefault("_branches_by", {})
    if not is_new and state["_branches_of"] != place:
        others[state["_branches_of"]] = str(WRITTEN.texts().get("branches", ""))
        WRITTEN.put("branches", others.get(place, ""))
    state["_branches_of"] = place
    asked = str(WRITTEN.texts().get("branches", ""))
    found = from_text(asked, opened.config.vocab_size, ends(opened), start.room)
    if found is None:
        state["_branches_note"] = place
    found = found or Branches()
    WRITTEN.settle({"branches": str(found)})
    if state.get("_branches_note") == place and not found.moves:
        say(UNFIT)
    return found


def put(found: Branches) -> None:
    """For a callback: these are the branches from now on."""
    st.session_state.pop("_branches_note", None)
    WRITTEN.put("branches", str(found))


def write(
    found: Branches, tokens: Sequence[int], *, forced: bool, behind: int | None = None
) -> None:
    """For a callback: go on with these tokens; where they do not fit, that is said instead."""
    try:
        put(found.write(tokens, forced=forced, behind=behind))
    except ValueError as error:
        tell(str(error))


def tell(what: str) -> None:
    """For a callback: say this once, when the page is drawn."""
    st.session_state["_branches_told"] = what


def say_told() -> None:
    if what := st.session_state.pop("_branches_told", ""):
        say(what)


def follow(opened: Opened, start: Start, path: Sequence[int]) -> None:
    """For a callback: write these tokens behind the text, as a branch that the reader chose."""
    write(now(opened, start), path, forced=True, behind=0)


def buttons(found: Branches) -> None:
    """Undo, redo, and everything anew."""
    for label, key, icon, to, off in (
        ("Undo", "undo_writing", ":material/undo:", found.undo(), not found.done),
        ("Redo", "redo_writing", ":material/redo:", found.redo(), found.done == len(found.moves)),
        ("Clear", "clear_writing", ":material/clear_all:", Branches(), not found.moves),
    ):
        st.button(label, key=key, icon=icon, on_click=put, args=(to,), disabled=off)
