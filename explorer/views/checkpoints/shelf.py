"""The shelf: what can be opened and how big it is, known before a weight is read."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.app import shelves
from explorer.app.context import NO_MODEL, page_context
from explorer.app.messages import say
from explorer.app.sidebar import choose_model
from explorer.catalog import descriptions
from explorer.catalog.entries import Entry
from explorer.text.literal import literal
from explorer.text.number_format import megabytes
from explorer.views.checkpoints import findings

COLUMNS = {
    "Model": 16,
    "Kind": 25,
    "Family": 7,
    "Parameters": 10,
    "On disk": 9,
    "Reaches": 13,
    "": 10,
}
NUMBERS = ("Parameters", "On disk")
HIGHEST, ROW = 320, 49


def shelf() -> None:
    """Every model in a row of its own; the button opens it."""
    chosen = page_context().choice.model
    entries = shelves.entries()
    if not entries:
        say(NO_MODEL)
        return
    height = min(HIGHEST, ROW * (len(entries) + 1) + 20)
    with st.container(height=height, key="shelf", border=True, gap="xsmall"):
        for heading, place in _places().items():
            place.caption(heading, text_alignment="right" if heading in NUMBERS else "left")
        for entry in entries:
            _row(entry, is_chosen=entry.name == chosen)
    findings.examine()


def _places() -> dict[str, DeltaGenerator]:
    places = st.columns(list(COLUMNS.values()), gap="small", vertical_alignment="center")
    return dict(zip(COLUMNS, places, strict=True))


def _row(entry: Entry, is_chosen: bool) -> None:
    places = _places()
    places["Model"].text(entry.name, wrap=False)
    _number(places["On disk"], megabytes(entry.bytes))
    if entry.config is None:
        places["Kind"].caption("cannot be opened", wrap=False)
        places[""].button(
            "Hide" if st.session_state.get("examined") == entry.name else "Why",
            key=f"why_{entry.name}",
            on_click=_ask,
            args=(entry.name,),
            width="stretch",
        )
        return
    places["Kind"].caption(descriptions.in_short(entry.config), wrap=False)
    places["Family"].text(entry.family, wrap=False)
    _number(places["Parameters"], f"{entry.parameters:,}")
    reached, _, _ = descriptions.measured(entry.run).partition(" (")
    places["Reaches"].caption(literal(reached), wrap=False)
    places[""].button(
        "Chosen" if is_chosen else "Open",
        key=f"open_{entry.name}",
        on_click=choose_model,
        args=(entry.name,),
        disabled=is_chosen,
        width="stretch",
    )


def _ask(name: str) -> None:
    """Show why a folder cannot be opened, or no longer."""
    is_shown = st.session_state.get("examined") == name
    st.session_state["examined"] = None if is_shown else name


def _number(place: DeltaGenerator, number: str) -> None:
    place.text(number, width="stretch", text_alignment="right", wrap=False)
