"""Where tokens live: their vectors in three dimensions, through the layers, and the nearest."""

import streamlit as st

from explorer.analysis import embedding_space, nearest_tokens, principal_components
from explorer.analysis.embedding_space import EMBEDDING, STREAM, UNEMBEDDING
from explorer.app.context import page_context
from explorer.app.controls import one_of
from explorer.views.input.moving_tokens import draw_moving_tokens
from explorer.views.input.token_neighbours import (
    SpaceChoice,
    draw_neighbours_of_all,
    draw_neighbours_of_one,
    space_code,
)
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import script

STACKS = {"Encoder": "encoder", "Decoder": "decoder"}

widgets.opening(
    "Embedding space",
    "Each token is a vector. Tokens that are used alike lie close together, and every layer moves "
    "the vectors of your sentence.",
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
figure, neighbours = st.columns([5, 3], gap="medium")
with neighbours:
    chosen = draw_neighbours_of_one(choice)
with figure:
    draw_moving_tokens(context, choice, chosen.place)
draw_neighbours_of_all(choice)
widgets.notes(forward.notes)
widgets.closing(
    context,
    principal_components.principal_axes,
    nearest_tokens.nearest_by_part,
    embedding_space.token_paths,
    script=script(space_code, opened, forward, stack, choice.axes, chosen.id, chosen.count),
)
