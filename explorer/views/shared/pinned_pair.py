"""What is held travels: the token and the key of the whole pass are the other pages' pair."""

from __future__ import annotations

import streamlit as st

from explorer.analysis.forward_pass.stage_kind import Stage
from explorer.app.context import page_context
from explorer.app.persistent_choices import PersistentChoices
from explorer.app.session import session
from explorer.app.sidebar import switch_page
from explorer.app.url import whole
from explorer.catalog.attention_parts import site
from explorer.inference.forward_pass import ForwardPass
from explorer.views.shared import pinned
from explorer.views.shared.pinned import Pinned

NAMES = ("stage", "encoder_token", "decoder_token", "number", "key_token", "option")
FOLDED = PersistentChoices("walk", dict.fromkeys(NAMES, ""))
SEEN = "_walk_held"
"""Where this stands in the session, it is what the walk and the other pages agreed on last."""


def query_of(part: str) -> str:
    """Under which name the walk keeps the query of this attention."""
    return f"{part.split('.')[0]}_token"


def key_of(part: str) -> str:
    """And its key: cross-attention looks at the tokens of the encoder."""
    return "encoder_token" if part == "decoder.cross_attn" else "key_token"


def take() -> None:
    """What another page holds since, once."""
    part, found = page_context().choice.part, pinned.pinned_anywhere()
    if str(found) == st.session_state.get(SEEN, ""):
        return
    st.session_state[SEEN] = str(found)
    _keep(part, found)


def give(stage: Stage, forward: ForwardPass) -> None:
    """To the other pages, what was chosen here; what nobody chose follows their own defaults."""
    part = stage.part or page_context().choice.part
    found = Pinned(_place(query_of(part)), _place(key_of(part))).within(forward, part)
    if str(found) != st.session_state.get(SEEN, ""):
        st.session_state[SEEN] = str(found)
        pinned.pin(found)
    number = FOLDED.texts().get("number")
    if number and stage.shapes[-1][-1] == "d_model":
        st.session_state["number"] = number


def _keep(part: str, found: Pinned) -> None:
    for name, place in ((query_of(part), found.query), (key_of(part), found.key)):
        if place is not None:
            FOLDED.put(name, str(place))


def _place(name: str) -> int | None:
    return whole(FOLDED.texts().get(name, ""))


def way_here(found: Pinned) -> None:
    """From a page of the chosen head to its weights in the whole pass; alone there is no way."""
    page = session().pages.get("forward_pass")
    if page is None:
        return
    clicked = st.button(
        "This head in the forward pass",
        key="to_walk",
        type="tertiary",
        icon=":material/arrow_forward:",
        on_click=_lead,
        args=(found,),
    )
    if clicked:
        switch_page("forward_pass")


def _lead(found: Pinned) -> None:
    at = page_context().choice
    FOLDED.put("stage", f"{site(at.part, at.layer)}.weights")
    st.session_state["_walk_sidebar"] = at.model, at.part, at.layer
    pinned.pin(found)
    st.session_state[SEEN] = str(found)
    _keep(at.part, found)


def ways_on(query: int, key: int) -> None:
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
                key=f"walk_to_{name}",
                type="tertiary",
                icon=":material/arrow_forward:",
                on_click=pinned.pin,
                args=(pair,),
            )
            if clicked:
                switch_page(name)
