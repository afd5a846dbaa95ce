"""The chosen model in words, and the view of it that is asked for."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from explorer.app import shelves
from explorer.app.context import page_context
from explorer.app.messages import say
from explorer.catalog import descriptions, entries
from explorer.catalog.entries import LibraryError, Opened
from explorer.text.literal import literal
from explorer.views.checkpoints import (
    findings,
    head_numbers,
    parameter_tree,
    spectrum,
    tensor_view,
    weight_norms,
)

LONGEST = 300
"""Characters of what a record says of its model; somebody else may have written it."""

SHOWN: dict[str, Callable[[Opened], None]] = {
    "Ledger": parameter_tree.show,
    "Weights": tensor_view.show,
    "Norms": weight_norms.show,
    "Spectra": spectrum.show,
    "Heads": head_numbers.show,
    "Doctor": findings.show,
}


def opened() -> Opened:
    """The chosen model; where it cannot be opened, the doctor says what its files lack."""
    name = page_context().choice.model
    for entry in shelves.entries():
        if entry.name == name:
            try:
                return entries.open_entry(entry)
            except LibraryError as error:
                say(str(error))
                findings.show_files(entry.folder)
                st.stop()
    return page_context().opened


def described(model: Opened) -> None:
    """The config as sentences, what the model reaches and what there is to see."""
    st.subheader(literal(model.title), anchor=False)
    st.markdown(descriptions.in_words(model.config))
    measured = descriptions.measured(model.run) if model.run.get("metrics") else ""
    more = [measured, descriptions.attribution(model.run), model.expectation]
    if said := " · ".join(literal(words, LONGEST) for words in more if words):
        st.caption(said)


def show(view: str, model: Opened) -> None:
    """One view of the model."""
    SHOWN[view](model)
