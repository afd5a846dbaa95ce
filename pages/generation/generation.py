"""A text that grows token by token: how each is chosen, beam search, and teacher forcing."""

import streamlit as st

from explorer.analysis.forward_pass.stages import stages_of
from explorer.app.choosing import switch_page
from explorer.app.context import PageContext, page_context
from explorer.app.controls import one_of, option_of
from explorer.app.messages import say
from explorer.app.session import redraw, session
from explorer.app.throttle import turn
from explorer.catalog.opened_model import OpenModel
from explorer.components.fragment import fragment
from explorer.inference.generation_limits import CANNOT_GENERATE, can_generate
from explorer.views.generation.chat_panel import draw_chat_panel
from explorer.views.generation.teacher_forcing_view import draw_teacher_forcing
from explorer.views.generation.token_by_token import draw_token_by_token
from explorer.views.generation.token_trees import draw_beam_search
from explorer.views.shared import pass_position, widgets
from explorer.views.shared.widgets import ViewSpec
from models.beam_search import beam_search
from models.generation import generate
from models.sampling import choose_from, keep_top_k, keep_top_p

WAYS = {
    "Token by token": ViewSpec(
        "The model writes one token after another; the table says how likely each next one is.",
        draw_token_by_token,
        (choose_from, keep_top_k, keep_top_p, generate),
    ),
    "Beam search": ViewSpec(
        "The best few beginnings are kept at every step; the closer a score is to 0, the better.",
        draw_beam_search,
        (beam_search,),
    ),
    "Teacher forcing": ViewSpec(
        "As in training: each token is predicted after the right ones, not after the model's own.",
        draw_teacher_forcing,
        (generate,),
    ),
}
opened_with = option_of("way", list(WAYS))
widgets.opening_of_view("Generation", "way", WAYS)


def require_generation(opened: OpenModel) -> None:
    """End the page with a link to the output of a model that does not generate."""
    if can_generate(opened):
        return
    say(CANNOT_GENERATE)
    if "forward_pass" in session().pages:
        last = stages_of(opened.config)[-1].name
        clicked = st.button(
            "Its output: the last stage of the forward pass",
            key="to_last_stage",
            type="tertiary",
            icon=":material/arrow_forward:",
            on_click=pass_position.STAGE_CHOICES.put,
            args=("stage", last),
        )
        if clicked:
            switch_page("forward_pass")
    st.stop()


@fragment()
@turn()
def draw_generation(context: PageContext) -> None:
    """The part of the page that another token draws again."""
    row = st.container(horizontal=True, vertical_alignment="center")
    with row:
        way = one_of("way", list(WAYS), label_visibility="collapsed")
    if way != opened_with:  # the sentence is outside of this part
        redraw()
    lines = WAYS[way].draw(context, row)
    widgets.closing(context, *WAYS[way].code, script=lines)


context = page_context()
require_generation(context.opened)
draw_generation(context)
draw_chat_panel(context)
