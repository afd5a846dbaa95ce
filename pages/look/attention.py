"""Who looks at whom: every head of every layer, and one of them large."""

import streamlit as st

from explorer import session, widgets
from explorer.components import grid, lines
from models.attention import MultiHeadAttention, scaled_dot_product_attention

widgets.opening(
    "Attention",
    "Each small picture is one head: the stronger a cell, the more the token of that row "
    "looks at the token of that column.",
)
at = session.choice()
reading = session.reading_of_text()
weights = reading.all_weights(at.part)

has_many = reading.part(at.part).heads > 8
overview, large = widgets.side_by_side(4, 5) if has_many else widgets.side_by_side(2, 3)
with overview:
    st.markdown("**Every head** · layers down, heads across")
    grid(weights, selected=(at.layer, at.head), key="overview", on_pick=session.look_at)
    widgets.answer(reading)
    widgets.notes(reading.notes)
with large:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**Layer {at.layer}, head {at.head}**", width="stretch")
        view = st.segmented_control(
            "View",
            ["Matrix", "Lines"],
            default="Matrix",
            key="view",
            required=True,
            label_visibility="collapsed",
            bind="query-params",
        )
    if view == "Matrix":
        widgets.one_head(reading, key="attention_head")
    else:
        lines(
            weights[at.layer],
            reading.rows(at.part),
            reading.columns(at.part),
            key="attention_lines",
            selected_head=at.head,
            height=widgets.MATRIX_HEIGHT,
        )

st.markdown(f"{reading.part(at.part).words.explanation} Every row adds up to one.")
widgets.code(MultiHeadAttention.forward, scaled_dot_product_attention)
