"""Who may look at whom, and what a mask does to the scores of the chosen head."""

from functools import partial

import streamlit as st

from explorer.app import controls
from explorer.app.context import page_context
from explorer.app.messages import or_stop
from explorer.inference import mask_parts
from explorer.inference.forward_pass import ForwardPass
from explorer.snippets import attention_code
from explorer.views.shared import widgets
from models import masking
from models.attention import attention_weights

widgets.opening(
    "Masks",
    "A mask says who may look at whom: a hatched cell is forbidden, and its score "
    "is taken out before the weights are made.",
)
at, opened = page_context().choice, page_context().opened
head = at.part, at.layer, at.head
batch: tuple[ForwardPass, ...] = ()
example = controls.one_of("Example", "example", list(mask_parts.EXAMPLES), mask_parts.BATCH)
if example == mask_parts.STUDENT:
    shown = mask_parts.student()
else:
    whole = page_context().forward
    batch = (whole,)
    if example == mask_parts.BATCH:
        batch = or_stop(lambda: mask_parts.padded(opened, whole))
        widgets.notes(["The second sentence is left out of the batch."] if whole.pair else [])
    shown = mask_parts.of(batch[-1], at.part, at.layer)
st.caption(mask_parts.EXAMPLES[example])

if not batch:
    widgets.masks(shown, None)
else:
    made = mask_parts.pictures(batch[-1], *head)
    if made.adds_bias:
        st.caption("A bias by the distance of two tokens is part of the scores shown here.")
    widgets.masks(shown, made)
    widgets.notes(batch[-1].notes)
widgets.code(
    masking.causal_mask,
    masking.padding_mask,
    attention_weights,
    pasted=partial(attention_code.masks, batch, page_context().folder, head)
    if batch
    else attention_code.student,
)
