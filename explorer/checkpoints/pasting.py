"""The lines that make what one view of the Checkpoints page shows, for its code panel."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from explorer import session
from explorer.checkpoints.choosing import tensor_chosen
from explorer.checkpoints.ledger import CHOSEN
from explorer.library import Opened
from explorer.snippets import checkpoints, measuring


def pasted(view: str, opened: Opened) -> Callable[[], str]:
    """The panel of this view, made when it is opened."""
    folder = session.folder()

    def ledger() -> str:
        of = st.session_state.get("ledger", CHOSEN)
        return checkpoints.ledger(folder) if of == CHOSEN else checkpoints.ledger_of_preset(of)

    def heads() -> str:
        at, reading = session.choice(), session.reading_of_text()
        return measuring.statistics(reading, folder, at.part, at.layer)

    return {
        "Ledger": ledger,
        "Weights": lambda: checkpoints.tensor(folder, tensor_chosen(opened)),
        "Norms": lambda: checkpoints.norms(folder),
        "Spectra": lambda: checkpoints.spectrum(folder, tensor_chosen(opened, matrices=True)),
        "Heads": heads,
        "Doctor": lambda: checkpoints.doctor(folder),
    }[view]
