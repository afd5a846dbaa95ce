"""Who looks at whom: every head of every layer, and one of them large."""

import streamlit as st

from explorer.analysis import thumbnails
from explorer.app.context import page_context
from explorer.app.controls import one_of
from explorer.components import grid
from explorer.views.attention import display_options, large_head, token_view
from explorer.views.shared import export_panel, widgets
from models.attention import MultiHeadAttention, scaled_dot_product_attention

VIEWS = {"Matrix": large_head.as_matrix, "Lines": large_head.as_lines, "Tokens": token_view.two_way}

widgets.opening(
    "Attention",
    "Each small picture is one head: the stronger a cell, the more the token of that row "
    "looks at the token of that column.",
    takes_away=True,
)
at = page_context().choice
forward = page_context().forward
part = forward.part(at.part)
look = display_options.choose(forward, at.part)

overview, one = widgets.side_by_side(4, 5) if part.heads > 8 else widgets.side_by_side(2, 3)
with overview:
    st.markdown("**Every head** · layers down, heads across")
    small = thumbnails.of_reading(forward, at.part)
    framed = (at.layer, at.head) if look.of == "head" else None
    grid(small, selected=framed, key="overview", on_pick=display_options.pick)
    widgets.answer(forward)
    widgets.notes(forward.notes)
with one:
    with st.container(horizontal=True, vertical_alignment="center"):
        title = display_options.in_words(look, part, at.layer, at.head)
        st.markdown(f"**{title}**", width="stretch")
        view = one_of("View", "view", list(VIEWS), label_visibility="collapsed")
    VIEWS[view](forward, look)
    export_panel.take_away(lambda: large_head.taken(forward, look))

st.markdown(part.words.explanation)
widgets.code(
    MultiHeadAttention.forward,
    scaled_dot_product_attention,
    pasted=lambda: large_head.pasted(forward, look),
)
