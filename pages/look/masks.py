"""Who may look at whom, and what a mask does to the scores of the chosen head."""

from functools import partial

import streamlit as st

from explorer import choices, masks, session, widgets
from explorer.reading import Reading
from explorer.snippets import looking
from models import masking
from models.attention import attention_weights

widgets.opening(
    "Masks",
    "A mask says who may look at whom: a hatched cell is forbidden, and its score "
    "is taken out before the weights are made.",
)
at, opened = session.choice(), session.opened()
head = at.part, at.layer, at.head
batch: tuple[Reading, ...] = ()
example = choices.one_of("Example", "example", list(masks.EXAMPLES), masks.BATCH)
if example == masks.STUDENT:
    shown = masks.student()
else:
    whole = session.reading_of_text()
    batch = (whole,)
    if example == masks.BATCH:
        batch = session.or_say(lambda: masks.padded(opened, whole))
        widgets.notes(["The second sentence is left out of the batch."] if whole.pair else [])
    shown = masks.of(batch[-1], at.part, at.layer)
st.caption(masks.EXAMPLES[example])

if not batch:
    widgets.masks(shown, None)
else:
    made = masks.pictures(batch[-1], *head)
    if made.adds_bias:
        st.caption("A bias by the distance of two tokens is part of the scores shown here.")
    widgets.masks(shown, made)
    widgets.notes(batch[-1].notes)
widgets.code(
    masking.causal_mask,
    masking.padding_mask,
    attention_weights,
    pasted=partial(looking.masks, batch, session.folder(), head) if batch else looking.student,
)
