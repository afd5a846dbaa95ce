"""Who may look at whom, and what a mask does to the scores of the chosen head."""

import streamlit as st

from explorer import choices, masks, session, widgets
from models import masking
from models.attention import attention_weights

widgets.opening(
    "Masks",
    "A mask says who may look at whom: a hatched cell is forbidden, and its score "
    "is taken out before the weights are made.",
)
at, opened = session.choice(), session.opened()
example = choices.one_of("Example", "example", list(masks.EXAMPLES), masks.BATCH)
if example == masks.STUDENT:
    shown, reading = masks.student(), None
else:
    reading = session.reading_of_text()
    if example == masks.BATCH:
        whole = reading
        reading = session.or_say(lambda: masks.batch(opened, whole))
        widgets.notes(["The second sentence is left out of the batch."] if whole.pair else [])
    shown = masks.of(reading, at.part, at.layer)
st.caption(masks.EXAMPLES[example])

if reading is None:
    widgets.masks(shown, None)
else:
    made = masks.pictures(reading, at.part, at.layer, at.head)
    if made.adds_bias:
        st.caption("A bias by the distance of two tokens is part of the scores shown here.")
    widgets.masks(shown, made)
    widgets.notes(reading.notes)
widgets.code(masking.causal_mask, masking.padding_mask, attention_weights)
