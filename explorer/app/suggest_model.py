"""A sentence that the chosen model does not know: what it does not know, and a model that does."""

from functools import partial

import streamlit as st

from explorer.app import reader_models
from explorer.app.choosing import choose_model
from explorer.app.context import PageContext, reads_pairs
from explorer.app.messages import Suggestion, draw_suggestion, keep_note, take_notes
from explorer.app.session import session, state_of
from explorer.catalog import ModelError
from explorer.inference.readable_text import Unknown, unknown_of

UNKNOWN_WORDS = "unknown words"
"""The key of the note under the bar."""


def draw_unknown(context: PageContext) -> None:
    """Under the bar, the words that are unknown and the model to open instead.

    Where the model reads nothing of the sentence, the page says why and offers the same.
    """
    suggestion, found = state_of(Suggestion), _unknown_of(context)
    suggestion.label = ""
    if found and found.reader and "model" not in session().hidden:
        suggestion.label = f"Read it with {reader_models.labels(context.models)[found.reader]}"
        suggestion.choose = partial(choose_model, found.reader)
    keep_note(UNKNOWN_WORDS, *(found.sentences if found else ()), until=context.choice)
    if said := take_notes(UNKNOWN_WORDS, context.choice):
        with st.container(horizontal=True, vertical_alignment="center", key="unknown"):
            st.text(" ".join(said), width="content")
            draw_suggestion()


def _unknown_of(context: PageContext) -> Unknown | None:
    opened, at, second = context.model, context.choice, st.session_state.get("pair") or ""
    if isinstance(opened, ModelError):  # the page says it
        return None
    return unknown_of(
        opened, at.text, at.pair, context.models, lambda each: second if reads_pairs(each) else ""
    )
