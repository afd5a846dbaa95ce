"""Which keys each query may attend to, and what a mask does to the scores of the chosen head."""

import streamlit as st

from explorer.app import controls
from explorer.app.choosing import draw_page_link
from explorer.app.context import page_context
from explorer.inference import mask_examples
from explorer.views.attention.head_steps_view import draw_mask_example
from explorer.views.interventions.edit_forms import CELLS
from explorer.views.shared import widgets
from models import masking
from models.attention import attention_weights

context = page_context()
at, usual = context.choice, controls.option_of("example", list(mask_examples.EXAMPLES))
widgets.opening("Masks", mask_examples.sentence_of(usual, context.forward, at.part, at.layer))
example = controls.one_of("example", list(mask_examples.EXAMPLES))
lines = draw_mask_example(context, example)
st.caption(mask_examples.EXAMPLES[example])
draw_page_link("interventions", "Edit the mask cell by cell", change="Mask", mask_how=CELLS)
widgets.closing(context, masking.causal_mask, masking.padding_mask, attention_weights, script=lines)
