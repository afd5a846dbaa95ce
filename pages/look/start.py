"""Alive at once: a trained model, a sentence, and what the model looks at while it answers."""

import streamlit as st

from explorer import session, widgets
from models.attention import MultiHeadAttention, attention_weights

at = session.choice()
widgets.opening(
    "At a glance",
    "Every row is a word that the model writes; the stronger a cell, the more the model "
    "looks at that word of your sentence while it writes."
    if at.part == "decoder.cross_attn"
    else "Every row is a token of your sentence; the stronger a cell, the more that token "
    "looks at the token above the column.",
)
reading = session.reading_of_text()
picture, beside = widgets.side_by_side(2, 1)
with picture:
    widgets.one_head(reading, key="start_head")
with beside:
    widgets.answer(reading)
    widgets.notes(reading.notes)
    st.space("small")
    st.caption("Type your own sentence above, or go on.")
    widgets.ways_on("tokens", "positions", "attention", "masks", "train")

st.text(f"{session.opened().expectation} Every row adds up to one.")
widgets.code(MultiHeadAttention.forward, attention_weights)
