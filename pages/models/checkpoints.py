"""The models one can open, what they reach, and what the chosen one is made of."""

import streamlit as st

from explorer import describe, library, session, widgets

widgets.opening(
    "Checkpoints",
    "Every trained model there is here: those that ship with the app, and those you trained.",
)
chosen = session.choice().model
shelf = library.entries()
with st.container(height=min(600, 84 * len(shelf) + 20), key="shelf", border=True):
    for entry in shelf:
        widgets.shelf_row(entry, is_chosen=entry.name == chosen)

opened = session.opened()
st.subheader("What the chosen model is made of", anchor=False)
st.text(opened.title)
st.markdown(describe.in_words(opened.config))
if opened.expectation:
    st.markdown("**What to look for**")
    st.text(opened.expectation)
lines = describe.ledger(opened.model)
total = sum(line.count for line in lines)
st.dataframe(
    {
        "part": [line.part for line in lines] + ["total"],
        "tensors": [line.formula for line in lines] + [""],
        "parameters": [line.count for line in lines] + [total],
    },
    hide_index=True,
    height=min(460, 38 + 35 * (len(lines) + 1)),
    column_config={"parameters": st.column_config.NumberColumn(format="localized")},
)
if data := describe.attribution(opened.run):
    st.text(data)
widgets.ways_on("start", "attention")
