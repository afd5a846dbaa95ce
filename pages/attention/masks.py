"""Which keys each query may attend to, and what a mask does to the scores of the chosen head."""

import streamlit as st

from explorer.app import controls
from explorer.app.choosing import draw_page_link
from explorer.app.context import page_context
from explorer.inference import mask_examples
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.mask_examples import BATCH, STUDENT, YOURS
from explorer.views.attention.head_steps_view import draw_mask_example
from explorer.views.interventions.edit_forms import CELLS
from explorer.views.shared import widgets
from models import masking
from models.attention import attention_weights

SENTENCES = {
    STUDENT: "Causal mask: no word may read a later one. A hatched cell is masked, its weight 0.",
    YOURS: "Each row may read its plain columns. A hatched cell is masked, its weight 0.",
    BATCH: "Padding fills up a short text, and no word may read it: these columns are hatched.",
}
NOTHING_MASKED = "Nothing is masked here: every row may read every column."

context = page_context()
at, usual = context.choice, controls.option_of("example", list(mask_examples.EXAMPLES))
passed = context.passed if usual == YOURS else None
is_open = isinstance(passed, ForwardPass) and bool(passed.mask(at.part, at.layer).all())
widgets.opening("Masks", NOTHING_MASKED if is_open else SENTENCES[usual])
example = controls.one_of("example", list(mask_examples.EXAMPLES))
lines = draw_mask_example(context, example)
st.caption(mask_examples.EXAMPLES[example])
draw_page_link("interventions", "Edit the mask cell by cell", change="Mask", mask_how=CELLS)
widgets.closing(context, masking.causal_mask, masking.padding_mask, attention_weights, script=lines)
