"""What the reader has changed: the list of edits in the address, with undo, redo and remove."""

from __future__ import annotations

from typing import Any

import streamlit as st

from explorer.app import url
from explorer.app.messages import say
from explorer.app.session import session
from explorer.catalog.entries import Opened
from explorer.inference.edited_pass import Edited, edited, misfit
from explorer.inference.forward_pass import ForwardPass
from explorer.interventions.edit_links import (
    LONGEST,
    from_address,
    has_room_for,
    to_address,
    written,
)
from explorer.interventions.edit_words import words
from explorer.interventions.edits import Edit, History, MaskCell

LIST_HEIGHT = 190
FULL = "The address has no room for more edits: remove some."


def history(opened: Opened, forward: ForwardPass) -> tuple[History, Edited]:
    """The edits of the address and the pass they give; draws the buttons and the list.

    What does not fit this model and text is set aside: it stays in the list with its
    reason, and is made again where it fits. What is no edit at all is said and dropped.
    """
    buttons = st.container(horizontal=True, vertical_alignment="center")
    listed, field = st.container(), st.container()
    state, reader = st.session_state, session()
    if reader.edits_next is not None:
        state["edits"], reader.edits_next = reader.edits_next, None
    with field, st.expander("The edits as text"):
        st.text_input(
            "Edits",
            **url.bound("edits"),
            label_visibility="collapsed",
            help="What stands in the address; a link with it gives the same changes.",
        )
    found, notes = from_address(state.get("edits") or "")
    if notes:
        reader.edits_next = to_address(found)
        reader.edits_notes = reader.edits_next, tuple(notes)
        st.rerun()
    passed = edited(opened, forward, found.made)
    _buttons(buttons, found)
    with listed:
        _say(passed)
        _listed(opened, forward, found, passed)
    return found, passed


def put(made: History) -> None:
    """For a callback: this is what is changed from now on."""
    st.session_state["edits"] = to_address(made)
    session().edits_notes = None


def now() -> History:
    return from_address(st.session_state.get("edits") or "")[0]


def add(edit: Edit) -> None:
    """For a callback: one more edit, or the sentence that there is no room for it."""
    if why := _no_room(now(), edit):
        session().edits_notes = st.session_state.get("edits") or "", (why,)
    else:
        put(now().add(edit))


def make(opened: Opened, forward: ForwardPass, edit: Edit) -> None:
    """The same; but a cell of a mask that is so without any edit of it needs none."""
    without = now().without_same(edit)
    if isinstance(edit, MaskCell) and len(without.made) < now().done:
        mask = edited(opened, forward, without.made).forward.mask
        layers = range(forward.part(edit.part).layers) if edit.layer is None else [edit.layer]
        cells = [bool(mask(edit.part, layer)[edit.query, edit.key]) for layer in layers]
        if all(cell == edit.allowed for cell in cells):
            put(without)
            return
    add(edit)


def button(
    opened: Opened, forward: ForwardPass, edit: Edit | None, label: str, key: str, **how: Any
) -> None:
    """A button that makes an edit; off, with the reason, where it cannot be made."""
    made = now()
    why = "" if edit is None else misfit(opened, forward, made.made, edit)
    if edit is not None and not why:
        why = _no_room(made, edit)
    off = edit is None or bool(why)
    st.button(label, key=key, on_click=make, args=(opened, forward, edit), disabled=off, **how)
    if why:
        st.text(why)


def _no_room(made: History, edit: Edit) -> str:
    """Why the address cannot hold one more, in a sentence; nothing where it can."""
    if has_room_for(made, edit):
        return ""
    if has_room_for(History(), edit):
        return FULL
    return (  # letters other than a to z are written with several characters
        f"Written for the address this sentence has {len(written(edit)):,} characters, and the "
        f"address has room for about {LONGEST:,}: shorten the sentence."
    )


def _say(passed: Edited) -> None:
    """What of the address was dropped, and that edits wait for a text or model that they fit."""
    address, notes = session().edits_notes or ("", ())
    for note in notes if address == (st.session_state.get("edits") or "") else ():
        say(note)
    if count := len(passed.set_aside):
        which = "1 edit does" if count == 1 else f"{count} edits do"
        say(
            f"{which} not fit here and {'is' if count == 1 else 'are'} set aside: the list says "
            "why. What is set aside comes back where it fits."
        )


def _buttons(place: Any, found: History) -> None:
    undone = len(found.edits) - found.done
    for label, key, icon, to, off in (
        ("Undo", "undo", ":material/undo:", found.undo(), not found.done),
        ("Redo", "redo", ":material/redo:", found.redo(), not undone),
        ("Clear", "clear", ":material/clear_all:", found.clear(), not found.done),
    ):
        place.button(label, key=key, icon=icon, on_click=put, args=(to,), disabled=off)


def _listed(opened: Opened, forward: ForwardPass, found: History, passed: Edited) -> None:
    """Every edit in words; what was undone or set aside is said to be."""
    with st.container(height=LIST_HEIGHT, border=True, key="edits_made", gap="small"):
        if not found.edits:
            st.text("Nothing is changed yet. What you change is listed here.")
        for place, edit in reversed(list(enumerate(found.edits))):  # the newest in sight
            with st.container(horizontal=True, vertical_alignment="center"):
                how = " (undone)" if place >= found.done else ""
                if why := passed.set_aside.get(place):
                    how = f" (set aside). {why}"
                said = f"{place + 1}. {words(opened, forward, edit)}{how}"
                st.container(width="stretch").text(said)
                st.button(
                    "Remove",
                    key=f"remove_{place}",
                    on_click=put,
                    args=(found.without(place),),
                    type="tertiary",
                )
