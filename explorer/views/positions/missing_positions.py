"""What the Positions page says where a model does not have the chosen positions."""

from collections.abc import Sequence

import streamlit as st

from explorer.app.choosing import choose_model
from explorer.app.context import PageContext, config_of
from explorer.app.messages import say
from explorer.inference.position_passes import TRAINED_POSITIONS
from explorer.text.literal import literal
from explorer.views.shared import widgets

MOST_MODELS_NAMED = 3
NO_TABLE = "This model has no such trained positions to show."
CANNOT = "These positions are trained parameters, and this model has none."
DO_NOT_WORK = "The weights of this model do not work with this scheme: choose another one."


def draw_missing_positions(context: PageContext, scheme: str, why: str) -> None:
    """One sentence, with models here that have such positions, or how to get one."""
    if scheme not in TRAINED_POSITIONS:
        say(DO_NOT_WORK)
        return
    found = [
        entry.name for entry in context.models.values() if config_of(entry).positions == scheme
    ][:MOST_MODELS_NAMED]
    if not found:
        say(
            f"{why} No other model here has them either: train one with them (Model, Positions), "
            "open a published one, or choose another scheme."
        )
        widgets.page_links("training", "checkpoints")
        return
    say(f"{why} Open a model that was trained with them, or choose another scheme.")
    offer_models(found)


def offer_models(names: Sequence[str]) -> None:
    """A button for each, which chooses it."""
    with st.container(horizontal=True):
        for model in names:
            label = f"Open {literal(model)}"
            st.button(label, key=f"with_{model}", on_click=choose_model, args=(model,))
