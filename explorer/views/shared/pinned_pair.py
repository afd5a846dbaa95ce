"""The pinned cell as the Forward pass page keeps it: a token and a key; shared with the others."""

from dataclasses import dataclass

import streamlit as st

from explorer.analysis.forward_pass.stage import Stage
from explorer.app import streamlit_patches, widget_state
from explorer.app.choosing import switch_page
from explorer.app.context import PageContext
from explorer.app.persistent_choices import PersistentChoices
from explorer.app.session import session, state_of
from explorer.app.url import whole_number
from explorer.catalog.attention_parts import site
from explorer.views.shared import pinned
from explorer.views.shared.pinned import Pinned

STAGE_PARAMETERS = ("stage", "encoder_token", "decoder_token", "number", "key_token", "option")


@dataclass
class StageBar:
    """Model, part and layer of the bar when a stage was chosen last."""

    at: tuple[str, str, int] | None = None


STAGE_CHOICES = PersistentChoices("stages", dict.fromkeys(STAGE_PARAMETERS, ""), goes_with=StageBar)


@dataclass
class PinnedStage:
    """The pinned cell on which the stages and the other pages agreed last."""

    text: str = ""


def query_of(part: str) -> str:
    """The parameter that holds the query of this attention."""
    return f"{part.split('.')[0]}_token"


def key_of(part: str) -> str:
    """And its key: cross-attention attends to the tokens of the encoder."""
    return "encoder_token" if part == "decoder.cross_attn" else "key_token"


def take_pinned(context: PageContext) -> None:
    """Choose the tokens that another page has pinned since; once.

    After the browser's Back, the tokens of the address stay chosen.
    """
    found = pinned.pinned_anywhere()
    if str(found) == state_of(PinnedStage).text:
        return
    state_of(PinnedStage).text = str(found)
    if not streamlit_patches.came_back():
        _keep(context.choice.part, found)


def pin_chosen(context: PageContext, stage: Stage) -> None:
    """Pin for the other pages what was chosen here; what nobody chose keeps their own defaults."""
    part = stage.part or context.choice.part
    found = Pinned(_place(query_of(part)), _place(key_of(part))).within(context.forward, part)
    if str(found) != state_of(PinnedStage).text:
        state_of(PinnedStage).text = str(found)
        pinned.pin(found)
    number = STAGE_CHOICES.texts().get("number")
    if number and stage.shapes[-1][-1] == "d_model":
        widget_state.put("number", number)


def _keep(part: str, found: Pinned) -> None:
    for name, place in ((query_of(part), found.query), (key_of(part), found.key)):
        if place is not None:
            STAGE_CHOICES.put(name, str(place))


def _place(name: str) -> int | None:
    return whole_number(STAGE_CHOICES.texts().get(name, ""))


def forward_pass_link(context: PageContext, found: Pinned) -> None:
    """From a page of the chosen head to its weights in the forward pass."""
    if "forward_pass" not in session().pages:  # a page that is run alone has no others
        return
    clicked = st.button(
        "This head in the forward pass",
        key="to_forward_pass",
        type="tertiary",
        icon=":material/arrow_forward:",
        on_click=_choose_weights,
        args=(context, found),
    )
    if clicked:
        switch_page("forward_pass")


def _choose_weights(context: PageContext, found: Pinned) -> None:
    at = context.choice
    STAGE_CHOICES.put("stage", f"{site(at.part, at.layer)}.weights")
    state_of(StageBar).at = at.model, at.part, at.layer
    pinned.pin(found)
    state_of(PinnedStage).text = str(found)
    _keep(at.part, found)


def head_page_links(query: int, key: int) -> None:
    """From a stage of an attention to the pages of its head, which show the same query and key."""
    pages = session().pages
    if not pages:
        return
    pair = Pinned(query, key)
    with st.container(horizontal=True):
        for name, label in (
            ("head_steps", "This head, step by step"),
            ("query_key", "Query and key of this pair, number by number"),
        ):
            clicked = st.button(
                label,
                key=f"stage_to_{name}",
                type="tertiary",
                icon=":material/arrow_forward:",
                on_click=pinned.pin,
                args=(pair,),
            )
            if clicked:
                switch_page(name)
