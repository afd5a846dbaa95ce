"""Choosing from elsewhere what the bar shows: another model, head or page."""

from __future__ import annotations

from dataclasses import fields

import streamlit as st

from explorer.app import shelves
from explorer.app.context import Choice, first_head
from explorer.app.session import session

FRAME = tuple(each.name for each in fields(Choice))
"""What is chosen once for all pages, by its name in the address."""


def choose_head(layer: int, head: int) -> None:
    """Choose a layer and a head; for the callback of a view that was clicked."""
    st.session_state["layer"] = layer
    st.session_state["head"] = head


def choose_model(name: str) -> None:
    """Open another model: a typed text is kept, an untouched example is replaced."""
    shelf = shelves.openable()  # a model may have been trained since the page was drawn
    before = shelf.get(session().shown_model or "")
    if name not in shelf:
        return
    st.session_state["model"] = name
    if before is None or st.session_state.get("text", before.example) in before.examples:
        st.session_state["text"] = shelf[name].example
    part, layer, head = first_head(shelf[name])
    st.session_state["part"] = part
    if "scheme" in st.session_state:
        st.session_state["scheme"] = None  # the Positions page opens with the model's own
    choose_head(layer, head)


def switch_page(name: str, **address: str) -> None:
    """To another page at once, with what is chosen once for every page still in the address.

    Streamlit empties the address on the way, and does not write there what was chosen before.
    So it is chosen anew.
    """
    state, reader = st.session_state, session()
    chosen = {name: state[name] for name in FRAME if name in state}
    reader.choose_next = chosen | reader.choose_next
    st.switch_page(reader.pages[name], query_params=address)  # None would refuse bound ones


def follow_door() -> None:
    """To the page whose door was opened in a picture of the pass, if one was."""
    reader = session()
    page, reader.door = reader.door, ""
    address, reader.door_address = reader.door_address, {}
    if page in reader.pages and page != reader.page:
        switch_page(page, **address)


def take_what_was_chosen() -> None:
    """What a page chose for this run, before the widgets that show it are drawn."""
    reader = session()
    folder, reader.open_next = reader.open_next, None
    for entry in shelves.openable().values() if folder else ():
        if entry.folder == folder:
            choose_model(entry.name)
    st.session_state.update(reader.choose_next)
    reader.choose_next = {}
