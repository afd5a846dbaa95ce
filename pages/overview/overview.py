"""Alive at once: a trained model, a sentence, and what the model looks at while it answers."""

import streamlit as st

from explorer.app.context import page_context
from explorer.catalog.attention_parts import WORDS
from explorer.inference.answers import first_place
from explorer.inference.first_look import is_expected_in
from explorer.inference.output_tokens import last_stack_tokens
from explorer.snippets import attention_code
from explorer.views.shared import widgets
from models.attention import MultiHeadAttention, attention_weights

at = page_context().choice
words = WORDS[at.part]
widgets.opening("At a glance", words.opening)
forward, opened = page_context().forward, page_context().opened
picture, beside = widgets.side_by_side(2, 1)
with picture:
    widgets.one_head(forward, key="start_head")
with beside:
    widgets.answer(forward)
    widgets.notes(forward.notes)
    st.space("small")
    st.caption("Type your own sentence above, or go on.")
    widgets.ways_on("tokens", "positions", "attention", "masks", "training")

expected = opened.expectation if is_expected_in(opened, at.part) else ""
blind = not forward.mask(at.part, at.layer).any(-1).all()
sums = "Every row adds up to one" + (", but for rows that see nothing." if blind else ".")
st.text(f"{expected or words.explanation} {sums}")
place = first_place(opened, last_stack_tokens(forward))
head = at.part, at.layer, at.head
widgets.code(
    MultiHeadAttention.forward,
    attention_weights,
    pasted=lambda: attention_code.answer(forward, page_context().folder, head, place),
)
