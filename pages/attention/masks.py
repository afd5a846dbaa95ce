"""Which keys each query may attend to, and what a mask does to the scores of the chosen head."""

import streamlit as st

from explorer.app import controls
from explorer.app.choosing import draw_page_link
from explorer.app.context import page_context
from explorer.inference import mask_examples
from explorer.views.attention.mask_pictures import draw_mask_example
from explorer.views.interventions.edit_forms import CELLS
from explorer.views.shared import widgets
from models import masking
from models.attention import attention_weights

widgets.opening(
    "Masks",
    "A mask decides which keys each query may attend to: the score of a masked (hatched) cell "
    "becomes −∞ before the softmax, so its weight is 0.",
)
context = page_context()
with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
    example = controls.one_of("example", list(mask_examples.EXAMPLES))
    draw_page_link("interventions", "Edit the mask cell by cell", change="Mask", mask_how=CELLS)
st.caption(mask_examples.EXAMPLES[example])
lines = draw_mask_example(context, example)
widgets.closing(context, masking.causal_mask, masking.padding_mask, attention_weights, script=lines)
