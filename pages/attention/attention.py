"""Attention maps: every head of every layer small, and one of them large."""

from functools import partial

import streamlit as st

from explorer.analysis import thumbnails
from explorer.app.context import PageContext, page_context
from explorer.app.controls import one_of
from explorer.catalog.attention_parts import map_title
from explorer.components.picker import grid, select
from explorer.views.attention import display_options, large_head
from explorer.views.attention.score_sources_view import HeadCell, why_in_words
from explorer.views.shared import pinned, widgets
from explorer.views.shared.head_alone import head_alone
from explorer.views.shared.widgets import ViewSpec
from models.attention import MultiHeadAttention, scaled_dot_product_attention

VIEWS = {
    "Matrix": ViewSpec(
        "A head is one reader: the stronger a cell, the more its row reads its column.",
        large_head.draw_matrix,
    ),
    "Lines": ViewSpec(
        "The stronger a line, the more the token at its left reads the one at its right.",
        large_head.draw_lines,
    ),
    "Tokens": ViewSpec(
        "Upper halves: what the chosen token reads. Lower halves: what reads it.",
        large_head.draw_token_view,
    ),
}
FEW_HEADS, MANY_HEADS = 12, 48
"""Above the first number both columns fill the page; above the second they share it equally."""

context = page_context()
at = context.choice
widgets.opening_of_view("Attention maps", "view", VIEWS)
forward, part = context.forward, context.part
count = part.layers * part.heads
shares = (1, 1) if count > MANY_HEADS else (2, 3)
all_heads, one_head = st.columns(shares) if count > FEW_HEADS else widgets.side_by_side(*shares)
with one_head:
    under = st.container()
    with under.container(horizontal=True, vertical_alignment="center"):
        view = one_of("view", list(VIEWS), message_in=under, label_visibility="collapsed")
        options = display_options.choose_display(context)
with all_heads:
    small = thumbnails.thumbnails_of(forward, at.part)
    framed = (at.layer, at.head) if options.heads == "one" else None
    grid(
        small,
        selected=framed,
        key="overview",
        title=map_title(context.called, at.part, "All heads"),
        on_pick=display_options.show_single_head,
        every=large_head.every_head(context),
    )
    reasons = st.empty()  # beside the map: below it they would be below the window
    widgets.draw_answer(forward)
    widgets.notes(forward.notes)


@head_alone
def draw_head(context: PageContext) -> None:
    """Draw the large head, with its caption, its export and its code."""
    VIEWS[view].draw(context, options)
    cell = pinned.in_text(context, context.forward)
    if cell.query is not None and cell.key is not None:
        place = HeadCell(*context.choice.place, cell.query, cell.key)
        reasons.text(why_in_words(context.opened, context.forward, place))
    else:
        reasons.empty()
    with below:
        caption = large_head.head_caption(context, options)
        widgets.notes(filter(None, (part.words.explanation, caption)))
        own = {key: partial(make, context, options) for key, make in large_head.FIGURES.items()}
        lines = large_head.head_lines(context, options)
        widgets.closing(
            context, MultiHeadAttention.forward, scaled_dot_product_attention, script=lines, own=own
        )
    if options.heads == "one":
        select("overview", (context.choice.layer, context.choice.head), by="head-")


below = st.container()
with one_head:
    draw_head()
