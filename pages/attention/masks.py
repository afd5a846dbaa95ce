"""Which keys each query may attend to, and what a mask does to the scores of the chosen head."""

import streamlit as st

from explorer.app import controls
from explorer.app.choosing import draw_page_link
from explorer.app.context import page_context
from explorer.app.messages import or_stop
from explorer.inference import mask_parts
from explorer.inference.forward_pass import ForwardPass
from explorer.views.attention.mask_pictures import batch_code, draw_masks, masks_code, student_code
from explorer.views.interventions.edit_forms import CELLS
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import script
from models import masking
from models.attention import attention_weights

widgets.opening(
    "Masks",
    "A mask decides which keys each query may attend to: the score of a masked (hatched) cell "
    "becomes −∞ before the softmax, so its weight is 0.",
)
context = page_context()
at = context.choice
head = at.place
usual = mask_parts.YOURS if context.opened.config.pad_id is None else mask_parts.BATCH
with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
    example = controls.one_of("example", list(mask_parts.EXAMPLES), usual)
    draw_page_link("interventions", "Edit the mask cell by cell", change="Mask", mask_how=CELLS)
st.caption(mask_parts.EXAMPLES[example])
if example == mask_parts.STUDENT:
    draw_masks(mask_parts.student(), None, example)
    lines = script(student_code)
else:
    passes: tuple[ForwardPass, ...] = (context.forward,)
    if example == mask_parts.BATCH:
        passes = or_stop(lambda: mask_parts.padded(context.opened, context.forward))
        if at.pair:
            st.text("The second sentence is left out of the batch.")
    forward = passes[-1]
    pictures = mask_parts.pictures(forward, *head)
    if pictures.adds_bias:
        st.caption("The scores include the bias that positions add.")
    st.markdown(widgets.head_heading(context))
    draw_masks(mask_parts.of(forward, at.part, at.layer), pictures, widgets.head_title(context))
    widgets.notes(forward.notes)
    lines = script(masks_code, context.forward, *head)
    if example == mask_parts.BATCH:
        lines = script(batch_code, context.opened, context.forward) + lines
widgets.closing(context, masking.causal_mask, masking.padding_mask, attention_weights, script=lines)
