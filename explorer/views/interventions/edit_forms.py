"""The forms that change the pass, one kind of edit at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from explorer.app import url
from explorer.app.context import page_context
from explorer.app.controls import one_of, token
from explorer.app.folded_choices import Folded
from explorer.app.messages import say
from explorer.catalog.entries import Opened
from explorer.components import chips
from explorer.inference.forward_pass import ForwardPass
from explorer.interventions.core_edits import token_label
from explorer.interventions.edit_links import LONGEST_TEXT
from explorer.interventions.edits import (
    AblateAttention,
    AblateHead,
    AblateMlp,
    CutEdge,
    Patch,
    ReplaceToken,
)
from explorer.text import TextError, Token
from explorer.text.labels import cut
from explorer.text.token_labels import text_of
from explorer.views.interventions import mask_painter
from explorer.views.shared import pinned
from explorer.views.shared.edit_history import button

TO = {"Zero": "zero", "Mean over positions": "mean"}
EDGE_TO = {"Zero": "zero", "Mean over queries": "mean"}
THIS_HEAD, ALL_HEADS = "This head", "Every head of the layer"
STREAM, HEAD_OUT = "Stream after the layer", "Output of the head"
TOKEN_AT = Folded("token_at", {"token_at": ""})


def show(opened: Opened, forward: ForwardPass, changed: ForwardPass) -> None:
    """What can be changed, one kind at a time; which head and layer, the sidebar says."""
    FORMS[one_of("Change", "change", tuple(FORMS))](opened, forward, changed)


def _to() -> str:
    return TO[one_of("Its output becomes", "becomes", tuple(TO))]


def _head(opened: Opened, forward: ForwardPass, changed: ForwardPass) -> None:
    at = page_context().choice
    edit = AblateHead(at.part, at.layer, at.head, _to())
    label = f"Ablate layer {at.layer}, head {at.head}"
    button(opened, forward, edit, label, "ablate_head", type="primary")


def _layer(opened: Opened, forward: ForwardPass, changed: ForwardPass) -> None:
    at, to = page_context().choice, _to()
    own = f"{at.part.split('.')[0]}.self_attn"
    with st.container(horizontal=True):
        attention = AblateAttention(at.part, at.layer, to)
        label = f"Ablate the attention of layer {at.layer}"
        button(opened, forward, attention, label, "ablate_attention")
        mlp = AblateMlp(own, at.layer, to) if opened.config.d_ff else None
        label = f"Ablate the feed-forward of layer {at.layer}"
        button(opened, forward, mlp, label, "ablate_mlp")


def _edge(opened: Opened, forward: ForwardPass, changed: ForwardPass) -> None:
    at = page_context().choice
    rows, columns = changed.rows(at.part), changed.columns(at.part)
    words, holds = forward.part(at.part).words, pinned.seen(changed)
    last = len(rows) - 1
    with st.container(horizontal=True):
        query = token("From (query)", "edge_query", rows, _or(holds.query, last))
        key = token("To (key)", "edge_key", columns, _or(holds.key, 0))
    scope = one_of("In", "edge_in", (THIS_HEAD, ALL_HEADS))
    to = EDGE_TO[one_of("The edge becomes", "edge_becomes", tuple(EDGE_TO))]
    head = at.head if scope == THIS_HEAD else None
    if not bool(changed.mask(at.part, at.layer)[query, key]):
        st.text("This query may not look at this key, so there is no edge to cut.")
        return
    weight = float(changed.weights(at.part, at.layer, at.head)[query, key])
    said = words.cell.format(
        row=text_of(rows[query]), column=text_of(columns[key]), value=f"{weight:.3f}"
    )
    st.text(f"{said} in layer {at.layer}, head {at.head}.")
    edit = CutEdge(at.part, at.layer, head, query, key, to)
    button(opened, forward, edit, "Cut the edge", "cut_edge", type="primary")
    st.caption("The other weights of the row stay as they are: they no longer add up to one.")


def _or(place: int | None, otherwise: int) -> int:
    """The held place, where one is held."""
    return otherwise if place is None else place


def _token(opened: Opened, forward: ForwardPass, changed: ForwardPass) -> None:
    stack = "encoder" if forward.source else "decoder"
    part = f"{stack}.self_attn"
    tokens = changed.source or changed.target
    holds = pinned.seen(changed)
    at = page_context().choice.part  # what is held are places in its rows and columns
    query = holds.query if changed.rows(at) is tokens else None
    key = holds.key if changed.columns(at) is tokens else None
    first = _or(query, _or(key, 1))
    place = _place(tokens, min(first, len(tokens) - 1))
    chips(tokens, key="token_to_change", highlight=place, on_pick=_pick_token)
    st.text(f"Token {place} is “{text_of(tokens[place])}”. Click another one to change that.")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        how: dict[str, Any] = {"placeholder": "One token", **url.bound("new_token")}
        typed = st.text_input("Becomes", max_chars=60, **how)
        number, why = one_token(opened, typed or "")
        edit = None if number is None else _become(opened, part, place, number)
        button(opened, forward, edit, "Replace", "replace_token", type="primary")
        if (mask := opened.tokenizer.mask_id) is not None:
            button(opened, forward, _become(opened, part, place, mask), "Mask it", "mask_token")
    if why:
        st.text(why)


def _become(opened: Opened, part: str, place: int, token: int) -> ReplaceToken:
    return ReplaceToken(part, place, token, token_label(opened, token))


def _pick_token(place: int) -> None:
    TOKEN_AT.put("token_at", str(place))


def _place(tokens: Sequence[Token], first: int) -> int:
    """Which token is to be changed; what an address asks for in vain is said and replaced."""
    asked = str(TOKEN_AT.texts().get("token_at", ""))
    found = url.whole_number(asked, len(tokens))
    if asked and found is None:
        say(f"There is no token “{cut(asked, 20)}” in this text; showing {first}.")
    TOKEN_AT.settle({"token_at": "" if found is None else str(found)})
    return first if found is None else found


def one_token(opened: Opened, typed: str) -> tuple[int | None, str]:
    """The number of the one token that this is, or why it is none; a space may come before."""
    if not typed.strip():
        return None, ""
    for text in (typed, f" {typed}"):
        try:
            inside = [t for t in opened.tokenizer.encode(text) if t.end > t.start]
        except TextError as error:
            return None, str(error)
        if len(inside) == 1 and inside[0].id != opened.tokenizer.unk_id:
            return inside[0].id, ""
    if len(inside) == 1:
        return None, f"“{typed[:40]}” is not in this model's vocabulary."
    named = ", ".join(f"“{text_of(each)}”" for each in inside[:6])
    return None, f"“{typed[:40]}” is {len(inside)} tokens here: {named}. Type one."


def _patch(opened: Opened, forward: ForwardPass, changed: ForwardPass) -> None:
    at = page_context().choice
    words = "A sentence of as many tokens; what the model makes of it there is put in here"
    how: dict[str, Any] = {"max_chars": LONGEST_TEXT, "help": words, **url.bound("patch_text")}
    other = st.text_input("Another sentence", **how)
    what = one_of("What is put in", "patch_what", (HEAD_OUT, STREAM))
    part = at.part if what == HEAD_OUT else f"{at.part.split('.')[0]}.self_attn"
    rows = forward.rows(part)
    place = token("At", "patch_at", rows, len(rows) - 1)
    head = at.head if what == HEAD_OUT else None
    edit = Patch(part, at.layer, head, place, other) if (other or "").strip() else None
    of = f"layer {at.layer}, head {at.head}" if head is not None else f"layer {at.layer}"
    button(opened, forward, edit, f"Patch {of}", "patch", type="primary")


FORMS = {
    "Head": _head,
    "Layer": _layer,
    "Edge": _edge,
    "Mask": mask_painter.mask,
    "Token": _token,
    "Patch": _patch,
}
