"""The interventions in the address: their list, undo, redo, remove, and buttons that add one."""

from typing import Any

import streamlit as st

from explorer.app import url, widget_state
from explorer.app.context import PageContext
from explorer.app.messages import draw_notes, drop_notes, keep_note, say
from explorer.app.session import session
from explorer.catalog.open_model import OpenModel
from explorer.inference.edited_pass import EditedPass, run_edited, why_not_applicable
from explorer.inference.forward_pass import ForwardPass
from explorer.interventions.address_text import (
    MAX_EDITS_CHARACTERS,
    edit_to_text,
    from_address,
    has_room_for,
    to_address,
)
from explorer.interventions.edits import EditHistory, Intervention, MaskCell
from explorer.views.shared.edit_descriptions import describe_edit

LIST_HEIGHT = 190
FULL = "The address has no room for more interventions: remove some."


def draw_history(context: PageContext) -> tuple[EditHistory, EditedPass]:
    """The interventions of the address and the pass with them; draws their list and buttons.

    What does not apply to this model and text stays in the list with the reason, and applies
    again where it can. What cannot be read is dropped with a message.
    """
    buttons = st.container(horizontal=True, vertical_alignment="center")
    listed, field = st.container(), st.container()
    chosen = session().choose_next
    if "edits" in chosen:  # where no bar has taken it
        widget_state.put("edits", chosen.pop("edits"))
    with field, st.expander("Interventions as text"):
        st.text_input(label_visibility="collapsed", **url.bound("edits"))
    history, notes = from_address(_text())
    if notes:
        chosen |= {"edits": to_address(history)}  # its field is drawn already
        keep_note("edits", *notes, until=to_address(history))
        st.rerun()
    edited = run_edited(context.opened, context.forward, history.active)
    with buttons:
        _draw_buttons(history)
    with listed:
        _draw_notes(edited)
        _draw_list(context, history, edited)
    return history, edited


def _text() -> str:
    return widget_state.get("edits") or ""


def store_history(history: EditHistory) -> None:
    """For a callback: these are the interventions from now on."""
    widget_state.put("edits", to_address(history))
    drop_notes("edits")


def current_history() -> EditHistory:
    return from_address(_text())[0]


def add_edit(edit: Intervention) -> None:
    """For a callback: one more, or the message that there is no room for it."""
    if why := _why_no_room(current_history(), edit):
        keep_note("edits", why, until=_text())
    else:
        store_history(current_history().add(edit))


def add_intervention(opened: OpenModel, forward: ForwardPass, edit: Intervention) -> None:
    """The same; but a mask cell that has this value without an intervention needs none."""
    without = current_history().without_target(edit)
    if isinstance(edit, MaskCell) and len(without.active) < current_history().done:
        mask = run_edited(opened, forward, without.active).forward.mask
        layers = range(forward.part(edit.part).layers) if edit.layer is None else [edit.layer]
        cells = [bool(mask(edit.part, layer)[edit.query, edit.key]) for layer in layers]
        if all(cell == edit.allowed for cell in cells):
            store_history(without)
            return
    add_edit(edit)


def edit_button(
    context: PageContext, edit: Intervention | None, label: str, key: str, **how: Any
) -> None:
    """A button that adds an intervention; disabled, with the reason, where it does not apply."""
    opened, forward, history = context.opened, context.forward, current_history()
    why = ""
    if edit is not None:
        why = why_not_applicable(opened, forward, history.active, edit)
        why = why or _why_no_room(history, edit)
    disabled = edit is None or bool(why)
    args = opened, forward, edit
    st.button(label, key=key, on_click=add_intervention, args=args, disabled=disabled, **how)
    if why:
        st.text(why)


def _why_no_room(history: EditHistory, edit: Intervention) -> str:
    """Why the address cannot hold one more, in a sentence; empty where it can."""
    if has_room_for(history, edit):
        return ""
    if has_room_for(EditHistory(), edit):
        return FULL
    return (  # letters other than a to z are written with several characters
        f"This intervention takes {len(edit_to_text(edit)):,} characters in the address, which has "
        f"room for about {MAX_EDITS_CHARACTERS:,}: shorten its text."
    )


def _draw_notes(edited: EditedPass) -> None:
    """What of the address was dropped, and how many interventions do not apply."""
    draw_notes("edits", _text())
    if count := len(edited.not_applicable):
        which = "1 intervention does" if count == 1 else f"{count} interventions do"
        say(
            f"{which} not apply to this model and text: the list says why. Such interventions "
            "are kept and apply again where they can."
        )


def _draw_buttons(history: EditHistory) -> None:
    can_redo = history.done < len(history.edits)
    for label, key, icon, next_history, enabled in (
        ("Undo", "undo", ":material/undo:", history.undo(), history.done),
        ("Redo", "redo", ":material/redo:", history.redo(), can_redo),
        ("Clear", "clear", ":material/clear_all:", history.clear(), history.done),
    ):
        args = (next_history,)
        st.button(
            label, key=key, icon=icon, on_click=store_history, args=args, disabled=not enabled
        )


def _draw_list(context: PageContext, history: EditHistory, edited: EditedPass) -> None:
    """Every intervention in words, the newest first, with its state and a button."""
    with st.container(height=LIST_HEIGHT, border=True, key="edits_made", gap="small"):
        if not history.edits:
            st.text("No interventions yet. They will be listed here.")
        for index, edit in reversed(list(enumerate(history.edits))):
            with st.container(horizontal=True, vertical_alignment="center"):
                state = " (undone)" if index >= history.done else ""
                if why := edited.not_applicable.get(index):
                    state = f" (does not apply). {why}"
                words = describe_edit(context.opened, context.forward, edit)
                st.container(width="stretch").text(f"{index + 1}. {words}{state}")
                st.button(
                    "Remove",
                    key=f"remove_{index}",
                    on_click=store_history,
                    args=(history.remove(index),),
                    type="tertiary",
                )
