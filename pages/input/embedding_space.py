"""The vectors of tokens on principal components, through the layers, and the nearest ones."""

import streamlit as st

from explorer.analysis import embedding_space
from explorer.analysis.embedding_space import EMBEDDING, STREAM, UNEMBEDDING, unembedding
from explorer.app import address
from explorer.app.context import page_context
from explorer.app.controls import one_of, option_of, switch
from explorer.catalog import ModelError
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

IN_3D = "3-D"
STACKS = {"Encoder": "encoder", "Decoder": "decoder"}
SENTENCES = {
    EMBEDDING: "Each token is a vector: tokens that are used alike lie close together. Bold are "
    "yours.",
    STREAM: "A line is a token's way through the layers, from its embedding (grey) to its end "
    "(bold).",
    UNEMBEDDING: "Where your tokens end (bold); lines lead to the tokens nearest to the chosen "
    "one's end.",
    IN_3D: "A line is a token's way through the layers; Play moves all your tokens along theirs.",
}

context = page_context()
if isinstance(context.model, ModelError):  # the page ends below with what is wrong
    widgets.opening("Embedding space", SENTENCES[EMBEDDING])
opened = context.opened
stack, stacks = opened.config.stacks[-1], ["Encoder", "Decoder"]
if len(opened.config.stacks) > 1:  # cross-attention reads the sentence in the encoder
    if context.choice.part == "decoder.self_attn":
        stacks.reverse()
    stack = STACKS[option_of("of_stack", stacks)]
has_unembedding = stack == opened.config.stacks[-1] and unembedding(opened.model) is not None
options = (EMBEDDING, STREAM, *([UNEMBEDDING] if has_unembedding else []))
moves = address.current_value("in_3d").lower() == "true"
axes = option_of("space_of", options)
widgets.opening("Embedding space", SENTENCES[IN_3D if moves else axes])
forward = context.forward
with st.container(horizontal=True):
    if len(opened.config.stacks) > 1:
        one_of("of_stack", tuple(STACKS), stacks[0])
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
