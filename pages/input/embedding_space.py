"""The vectors of tokens on principal components, through the layers, and the nearest ones."""

import streamlit as st

from explorer.analysis import embedding_space
from explorer.analysis.embedding_space import EMBEDDING, STREAM, UNEMBEDDING
from explorer.app.context import page_context
from explorer.app.controls import one_of, switch
from explorer.views.input.token_vectors import (
    SpaceChoice,
    choose_token,
    draw_moving_tokens,
    draw_neighbours_of_all,
    draw_neighbours_of_one,
    space_code,
)
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import script

STACKS = {"Encoder": "encoder", "Decoder": "decoder"}

widgets.opening(
    "Embedding space",
    "Each token is a vector: tokens that are used alike lie close together.",
)
context = page_context()
opened, forward = context.opened, context.forward
stack = opened.config.stacks[-1]
with st.container(horizontal=True):
    if len(opened.config.stacks) > 1:
        own = context.choice.part.partition(".")[0].capitalize()
        stack = STACKS[one_of("of_stack", tuple(STACKS), own)]
    has_unembedding = SpaceChoice(opened, forward, stack, EMBEDDING).has_unembedding
    options = (EMBEDDING, STREAM, *([UNEMBEDDING] if has_unembedding else []))
    choice = SpaceChoice(opened, forward, stack, one_of("space_of", options))
    place = choose_token(choice)
    in_3d = switch("in_3d")
figure, neighbours = st.columns([7, 2], gap="small")
with neighbours:
    chosen, count = draw_neighbours_of_one(choice, place)
with figure:
    draw_moving_tokens(context, choice, place, in_3d=in_3d)
draw_neighbours_of_all(choice)
widgets.notes(forward.notes)
widgets.closing(
    context,
    embedding_space.principal_axes,
    embedding_space.nearest_by_part,
    embedding_space.token_paths,
    script=script(space_code, opened, forward, stack, choice.axes, chosen, count),
)
