"""The chosen model in words, and the view of it that is asked for."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from explorer import describe, library, session, shelves
from explorer.checkpoints import doctor, heads, ledger, norms, spectra, weights
from explorer.library import LibraryError, Opened
from explorer.text.literal import literal

LONGEST = 300
"""Characters of what a record says of its model; somebody else may have written it."""

SHOWN: dict[str, Callable[[Opened], None]] = {
    "Ledger": ledger.show,
    "Weights": weights.show,
    "Norms": norms.show,
    "Spectra": spectra.show,
    "Heads": heads.show,
    "Doctor": doctor.show,
}


def opened() -> Opened:
    """The chosen model; where it cannot be opened, the doctor says what its files lack."""
    name = session.choice().model
    for entry in shelves.entries():
        if entry.name == name:
            try:
                return library.open_entry(entry)
            except LibraryError as error:
                session.say(str(error))
                doctor.show_files(entry.folder)
                st.stop()
    return session.opened()


def described(model: Opened) -> None:
    """The config as sentences, what the model reaches and what there is to see."""
    st.subheader(literal(model.title), anchor=False)
    st.markdown(describe.in_words(model.config))
    measured = describe.measured(model.run) if model.run.get("metrics") else ""
    more = [measured, describe.attribution(model.run), model.expectation]
    if said := " · ".join(literal(words, LONGEST) for words in more if words):
        st.caption(said)


def show(view: str, model: Opened) -> None:
    """One view of the model."""
    SHOWN[view](model)
