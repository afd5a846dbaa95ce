"""The Positions page: which scheme, and what is looked at: itself, a mistake, order, length."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from explorer.analysis.position_schemes import EXPLANATIONS, SCHEMES
from explorer.app.context import page_context
from explorer.app.controls import one_of
from explorer.catalog.opened_model import Opened
from explorer.views.positions.doubled_exponent import mistake
from explorer.views.positions.length_extrapolation import length
from explorer.views.positions.permutation import order
from explorer.views.positions.scheme import pictures

Lines = Callable[[], str] | None
"""What makes the lines of the code panel, where there is something to run."""
VIEWS: dict[str, Callable[[Opened, str], Lines]] = {
    "The scheme": pictures,
    "Another order": order,
    "Longer than trained": length,
    "A doubled exponent": mistake,
}


def show() -> tuple[str, Lines]:
    """The whole screen; returns the scheme that is chosen, and the lines of what is shown."""
    opened = page_context().opened
    own = opened.config.positions
    names = {SCHEMES[name]: name for name in [own, *(each for each in SCHEMES if each != own)]}
    chosen = names[one_of("Scheme", "scheme", tuple(names), SCHEMES[own])]
    view = one_of("Look at", "lab", tuple(VIEWS))
    whose = "This is the chosen model's own scheme."
    if chosen != own:
        whose = f"The chosen model uses another one: {SCHEMES[own]}."
    st.caption(f"{whose} {EXPLANATIONS[chosen]}")
    return chosen, VIEWS[view](opened, chosen)
