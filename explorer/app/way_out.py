"""A sentence that the chosen model does not know: what it does not know, and a model that does."""

from __future__ import annotations

from functools import partial

import streamlit as st

from explorer.app import shelves
from explorer.app.choosing import choose_model
from explorer.app.context import PageContext, reads_pairs
from explorer.app.messages import draw_way_out
from explorer.app.session import session
from explorer.catalog import ModelError, opened_model
from explorer.inference.chat_prompt import reading_prompts
from explorer.inference.readable_text import Unknown, unknown_of


def draw_unknown(context: PageContext) -> None:
    """Under the bar, the words that are unknown and the way out.

    Where the model reads nothing of the sentence, the page says why and offers the same.
    """
    reader = session()
    reader.said, reader.way_out = (), None
    found = _unknown_of(context)
    if found is None:
        return
    if found.reader and "model" not in reader.hidden:
        label = f"Read it with {shelves.labels(context.shelf)[found.reader]}"
        reader.way_out = label, partial(choose_model, found.reader)
    if found.said:
        reader.said = found.said
        with st.container(horizontal=True, vertical_alignment="center", key="unknown"):
            st.text(" ".join(found.said), width="content")
            draw_way_out()


def _unknown_of(context: PageContext) -> Unknown | None:
    at, second = context.choice, st.session_state.get("pair") or ""
    try:
        opened = opened_model.open_entry(context.shelf[at.model])
    except ModelError:  # the page says it
        return None
    opened = reading_prompts(opened) if at.special else opened
    return unknown_of(
        opened, at.text, at.pair, context.shelf, lambda each: second if reads_pairs(each) else ""
    )
