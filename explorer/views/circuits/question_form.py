"""The question of the Circuits page: the corrupted text, the two answers and the metric."""

from __future__ import annotations

import streamlit as st

from explorer.app.context import PageContext
from explorer.app.controls import one_of, text_field
from explorer.app.url import TEXT_LIMIT
from explorer.circuits.outcome import metrics_of
from explorer.circuits.text_pairs import PairError, Question, TextPair, question_of

LONGEST_ANSWER = 60


def draw_question(context: PageContext) -> Question | None:
    """What is asked; None, and a sentence, where it is no question."""
    corrupted = text_field("Corrupted text", "corrupted", TEXT_LIMIT, context.choice.text)
    with st.container(horizontal=True):
        answer = text_field("Answer", "answer_token", LONGEST_ANSWER)
        against = text_field("Against", "against_token", LONGEST_ANSWER)
        metric = one_of("Metric", "outcome", metrics_of(context.opened.config))
    pair = TextPair(context.choice.text, corrupted, answer, against)
    try:
        return question_of(context.opened, [pair], metric)
    except PairError as error:
        st.text(str(error))
        return None
