"""The first page: the whole forward pass in one picture, and the head that is chosen in it."""

import streamlit as st

from explorer.analysis.default_head import on_pattern
from explorer.analysis.information_flow import route
from explorer.app.context import page_context
from explorer.catalog.attention_parts import WORDS
from explorer.views.overview import map_view
from explorer.views.shared import widgets
from explorer.views.shared.download_offer import draw_offer
from explorer.views.shared.edit_history import AFTER, BEFORE, draw_active
from models.attention import MultiHeadAttention, attention_weights

context = page_context()
at = context.choice
words = WORDS[at.part]
widgets.opening(
    "Overview",
    "Columns are tokens. An orange line is attention; the wider, the larger its part of the "
    "answer.",
)
edited, which = draw_active(context, (AFTER, BEFORE))
if which == AFTER:
    context = context.with_pass(edited.forward)
forward, opened = context.forward, context.opened
picture = map_view.draw_map(context)
st.space("small")  # or the window cuts the button
draw_offer(context)
widgets.notes(forward.notes)
map_of_head, output = widgets.side_by_side(2, 1)
with map_of_head:
    widgets.draw_head(context, key="start_head")
with output:
    widgets.draw_answer(forward)
    st.space("small")
    widgets.page_links("tokens", "positions", "attention", "masks", "training")

head = at.place
is_blind = not forward.mask(at.part, at.layer).any(-1).all()
widgets.notes(filter(None, (widgets.head_summary(context), on_pattern(opened, forward, *head))))
sums = "Every row sums to 1, except fully masked rows." if is_blind else "Every row sums to 1."
has_sums = not widgets.weights_of_head(context).isnan().any()
st.text(f"{words.explanation} {sums}" if has_sums else words.explanation)
lines = map_view.code(context, has_edges=picture is not None)
if picture is not None:
    map_view.draw_late(context, picture)  # before the export, which has it too
widgets.closing(context, MultiHeadAttention.forward, attention_weights, route, script=lines)
