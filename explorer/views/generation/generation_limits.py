"""Which models generate text, and how many tokens at once."""

import streamlit as st

from explorer.analysis.forward_pass.stages import stages_of
from explorer.app.choosing import switch_page
from explorer.app.controls import slider
from explorer.app.messages import say
from explorer.app.session import session
from explorer.catalog.open_model import OpenModel
from explorer.inference.continuation import CANNOT_GENERATE, can_generate
from explorer.views.shared import pass_position


def require_generation(opened: OpenModel) -> None:
    """For a model that does not generate, a link to its output; the page ends there."""
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


def choose_length() -> int:
    """How many tokens are generated at once."""
    return int(slider("length"))
