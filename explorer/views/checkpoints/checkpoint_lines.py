"""The lines that make what one view of the Checkpoints page shows, for its code panel."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from explorer.app.context import page_context
from explorer.catalog.entries import Opened
from explorer.snippets import checkpoints_code, head_metrics_code
from explorer.views.checkpoints.parameter_tree import CHOSEN
from explorer.views.checkpoints.view_choice import tensor_chosen


def pasted(view: str, opened: Opened) -> Callable[[], str]:
    """The panel of this view, made when it is opened."""
    folder = page_context().folder

    def ledger() -> str:
        of = st.session_state.get("ledger", CHOSEN)
        return (
            checkpoints_code.ledger(folder)
            if of == CHOSEN
            else checkpoints_code.ledger_of_preset(of)
        )

    def heads() -> str:
        at, forward = page_context().choice, page_context().forward
        return head_metrics_code.head_metrics_script(forward, folder, at.part, at.layer)

    return {
        "Ledger": ledger,
        "Weights": lambda: checkpoints_code.tensor(folder, tensor_chosen(opened)),
        "Norms": lambda: checkpoints_code.norms(folder),
        "Spectra": lambda: checkpoints_code.spectrum(folder, tensor_chosen(opened, matrices=True)),
        "Heads": heads,
        "Doctor": lambda: checkpoints_code.doctor(folder),
    }[view]
