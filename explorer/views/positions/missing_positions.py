"""Positions that a model does not have: why, and where there are some."""

from __future__ import annotations

import streamlit as st

from explorer.analysis.position_experiments import TRAINED
from explorer.app.context import page_context
from explorer.app.messages import say
from explorer.app.sidebar import choose_model
from explorer.text.literal import literal
from explorer.views.shared import widgets

MOST_NAMED = 3
NO_TABLE = "This model has no such trained positions to show."
CANNOT = "These positions are trained numbers, and this model has none."
NOT_IN_IT = "The weights of this model cannot be passed in this scheme: choose another one."


def missing(name: str, why: str) -> None:
    """One sentence with the way out: models here that have them, or how to come by one."""
    if name not in TRAINED:
        say(NOT_IN_IT)
        return
    found = [
        entry.name
        for entry in page_context().shelf.values()
        if entry.config is not None and entry.config.positions == name
    ][:MOST_NAMED]
    if not found:
        say(
            f"{why} Nor has any other model here: train one with them (Model, Positions), open a "
            "published one, or choose another scheme."
        )
        widgets.page_links("training", "checkpoints")
        return
    say(f"{why} Open a model that was trained with them, or choose another scheme.")
    with st.container(horizontal=True):
        for model in found:
            st.button(
                f"Open {literal(model)}",
                key=f"with_{model}",
                on_click=choose_model,
                args=(model,),
            )
