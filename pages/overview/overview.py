"""The first page: a trained model, a sentence, one attention head and the model's output."""

import streamlit as st

from explorer.app.context import page_context
from explorer.catalog.attention_parts import WORDS
from explorer.inference.answers import first_place
from explorer.inference.first_look import on_pattern
from explorer.inference.output_tokens import last_stack_tokens
from explorer.snippets import attention_code
from explorer.views.shared import export_panel, widgets
from models.attention import MultiHeadAttention, attention_weights

context = page_context()
at = context.choice
words = WORDS[at.part]
widgets.opening("Overview", words.opening)
forward, opened = context.forward, context.opened
picture, beside = widgets.side_by_side(2, 1)
with picture:
    st.markdown(widgets.head_heading(context))
    widgets.draw_head(context, key="start_head")
with beside:
    widgets.draw_answer(forward)
    widgets.notes(forward.notes)
    st.space("small")
    st.caption("Enter your own sentence above, or continue with:")
    widgets.page_links("tokens", "positions", "attention", "masks", "training")

head = at.part, at.layer, at.head
is_blind = not forward.mask(at.part, at.layer).any(-1).all()
widgets.notes(filter(None, (widgets.head_summary(context), on_pattern(opened, forward, *head))))
sums = "Every row sums to 1, except fully masked rows." if is_blind else "Every row sums to 1."
has_sums = not forward.weights(*head).isnan().any()
st.text(f"{words.explanation} {sums}" if has_sums else words.explanation)
place = first_place(opened, last_stack_tokens(forward))
export_panel.export_button(export_panel.origin(context))
widgets.code_panel(
    MultiHeadAttention.forward,
    attention_weights,
    script=lambda: attention_code.answer_script(forward, context.folder, head, place),
)
