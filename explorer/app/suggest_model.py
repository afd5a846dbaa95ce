"""The words of the sentence that the chosen model does not know, and a model that knows them."""

from functools import partial

import streamlit as st

from explorer.app import reader_models
from explorer.app.choosing import choose_model
from explorer.app.context import PageContext, reads_pairs
from explorer.app.messages import Suggestion, draw_suggestion, keep_note, take_notes
from explorer.app.session import session, state_of
from explorer.catalog import ModelError
from explorer.catalog.available_models import ModelEntry
from explorer.inference.readable_text import Unknown, unknown_of

UNKNOWN_WORDS = "unknown words"
"""The key of the note under the bar."""


def draw_unknown(context: PageContext) -> None:
    """Say under the bar which words are unknown, and suggest a model that knows them.

    If the model cannot read the sentence at all, the page says why and makes the same suggestion.
    """
    suggestion, unknown = state_of(Suggestion), _unknown_of(context)
    suggestion.label = ""
    if unknown and unknown.reader and "model" not in session().hidden:
        suggestion.label = f"Read it with {reader_models.labels(context.models)[unknown.reader]}"
        suggestion.choose = partial(choose_model, unknown.reader)
    keep_note(UNKNOWN_WORDS, *(unknown.sentences if unknown else ()), until=context.choice)
    if sentences := take_notes(UNKNOWN_WORDS, context.choice):
        with st.container(horizontal=True, vertical_alignment="center", key="unknown"):
            st.text(" ".join(sentences), width="content")
            draw_suggestion()


def _unknown_of(context: PageContext) -> Unknown | None:
    model, choice, second = context.model, context.choice, st.session_state.get("pair") or ""
    if isinstance(model, ModelError):  # the page says it
        return None

    def pair_of(entry: ModelEntry) -> str:
        return second if reads_pairs(entry) else ""

    return unknown_of(model, choice.text, choice.pair, context.models, pair_of)
