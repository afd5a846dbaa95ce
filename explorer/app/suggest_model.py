"""Words of the sentence that the model does not know or reads as letters, and the ways out."""

from functools import partial

import streamlit as st

from explorer.app import reader_models, widget_state
from explorer.app.choosing import choose_model
from explorer.app.context import PageContext, reads_pairs
from explorer.app.links import quoted_names
from explorer.app.messages import Suggestion, draw_suggestion, keep_note, take_notes
from explorer.app.session import session, state_of
from explorer.catalog import ModelError
from explorer.catalog.available_models import ModelEntry
from explorer.catalog.opened_model import open_entry
from explorer.inference.chat_prompt import typed_as_letters
from explorer.inference.readable_text import unknown_of
from explorer.text.visible_text import in_quotes, literal

UNKNOWN_WORDS = "unknown words"
"""The key of the note under the bar."""
SPECIAL_SWITCH = "reads_special"


def draw_unknown(context: PageContext) -> None:
    """Say under the bar which words are unknown, and suggest a model that knows them.

    If the model cannot read the sentence at all, the page says why and makes the same suggestion.
    """
    model, choice, second = context.model, context.choice, st.session_state.get("pair") or ""

    def pair_of(entry: ModelEntry) -> str:
        return second if reads_pairs(entry) else ""

    suggestion, unknown = state_of(Suggestion), None
    if not isinstance(model, ModelError):  # the page says that
        unknown = unknown_of(model, choice.text, choice.pair, context.models, pair_of)
    suggestion.label = ""
    if unknown and unknown.reader and "model" not in session().hidden:
        suggestion.label = f"Read it with {reader_models.titles(context.models)[unknown.reader]}"
        suggestion.choose = partial(choose_model, unknown.reader)
    keep_note(UNKNOWN_WORDS, *(unknown.sentences if unknown else ()), until=context.choice)
    if sentences := take_notes(UNKNOWN_WORDS, context.choice):
        with st.container(horizontal=True, vertical_alignment="center", key="unknown"):
            st.text(" ".join(sentences), width="content")
            _draw_known(context)
            draw_suggestion()


def _draw_known(context: PageContext) -> None:
    """A button to a text whose words the model knows: its own example."""
    example, tokenizer, start = context.entry.example, context.opened.tokenizer, "Try"
    if example == context.choice.text or "text" in session().hidden:
        return
    if getattr(tokenizer, "kind", "") == "words":
        count = tokenizer.vocab_size - len({*tokenizer.special_ids, tokenizer.unk_id})
        start = f"It knows {count:,} words: try"
    put = partial(widget_state.put, "text", example)
    st.button(f"{start} {literal(in_quotes(example))}", key="known_words", on_click=put)


def draw_special(context: PageContext) -> None:
    """Say under the bar that special tokens were typed, with a switch to read them as such."""
    state, model, choice = st.session_state, context.model, context.choice
    if isinstance(model, ModelError):
        return
    entry_model = open_entry(context.entry) if choice.special else model
    names = typed_as_letters(entry_model, choice.text)
    if not names:
        return
    is_read = choice.special and not choice.pair
    how = "as such, and none is added around it" if is_read else "as letters"
    with st.container(horizontal=True, vertical_alignment="center", key="typed_special"):
        words = f"Special tokens in the sentence are read {how}: {quoted_names(names)}."
        st.text(words, width="content")
        if not choice.pair:
            state[SPECIAL_SWITCH] = choice.special
            st.toggle("Read as special tokens", key=SPECIAL_SWITCH, on_change=_take_special)


def _take_special() -> None:
    """The choice holds for this text: another one is read as letters again."""
    is_on = st.session_state[SPECIAL_SWITCH]
    st.session_state["special"] = st.session_state.get("text") if is_on else ""
