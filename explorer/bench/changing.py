"""What the reader changes: the list of edits in the address, and the forms that add to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from explorer import session
from explorer.bench import painting
from explorer.bench.asking import one_of
from explorer.components import chips
from explorer.components.labels import text_of
from explorer.edits import (
    LONGEST_TEXT,
    AblateAttention,
    AblateHead,
    AblateMlp,
    CutEdge,
    Edit,
    History,
    Patch,
    ReplaceToken,
    from_address,
    to_address,
)
from explorer.library import Opened
from explorer.reading import Reading
from explorer.rereading import Edited, edited, words
from explorer.text import TextError, Token
from models.interventions import EditError

KINDS = ("Head", "Layer", "Edge", "Mask", "Token", "Patch")
TO = {"Zero": "zero", "Mean over positions": "mean"}
EDGE_TO = {"Zero": "zero", "Mean over queries": "mean"}
LIST_HEIGHT = 190
THIS_HEAD, ALL_HEADS = "This head", "Every head of the layer"
FULL = "The address has no room for more edits: remove some."
STREAM, HEAD_OUT = "Stream after the layer", "Output of the head"


def history(opened: Opened, reading: Reading) -> tuple[History, Edited]:
    """The edits of the address that fit, and the pass they give; the rest is said and dropped.

    Draws the buttons and the list of edits.
    """
    state = st.session_state
    if "_edits_next" in state:
        state["edits"] = state.pop("_edits_next")
    buttons = st.container(horizontal=True, vertical_alignment="center")
    listed, field = st.container(), st.container()
    with field, st.expander("The edits as text"):
        st.text_input(
            "Edits",
            key="edits",
            bind="query-params",
            label_visibility="collapsed",
            help="What stands in the address; a link with it gives the same changes.",
        )
    found, notes = from_address(state.get("edits") or "")
    try:
        passed = edited(opened, reading, found.made)
        fitting = found.with_only(passed.made)
    except EditError as error:
        passed, notes = Edited(reading, (), ()), (*notes, f"The edits cannot be made. {error}")
        fitting = found.clear()
    notes = (*notes, *passed.dropped)
    if notes:
        state["_edits_next"] = to_address(fitting)
        state["_edits_notes"] = state["_edits_next"], notes
        st.rerun()
    _buttons(buttons, found)
    address, notes = state.get("_edits_notes", ("", ()))
    with listed:
        if address == (state.get("edits") or ""):
            for note in notes:
                session.say(note)
        _listed(opened, reading, found)
    return found, passed


def put(made: History) -> None:
    """For a callback: this is what is changed from now on."""
    st.session_state["edits"] = to_address(made)
    st.session_state.pop("_edits_notes", None)


def now() -> History:
    return from_address(st.session_state.get("edits") or "")[0]


def add(edit: Edit) -> None:
    """For a callback: one more edit, or the sentence that there is no room for it."""
    if now().has_room_for(edit):
        put(now().add(edit))
    else:
        st.session_state["_edits_notes"] = st.session_state.get("edits") or "", (FULL,)


def button(label: str, edit: Edit | None, key: str, **how: Any) -> None:
    """A button that makes an edit; off where there is none to make, or no room in the address."""
    full = edit is not None and not now().has_room_for(edit)
    st.button(
        label,
        key=key,
        on_click=add,
        args=(edit,),
        disabled=edit is None or full,
        help=FULL if full else None,
        **how,
    )


def _buttons(place: Any, found: History) -> None:
    undone = len(found.edits) - found.done
    for label, key, icon, to, off in (
        ("Undo", "undo", ":material/undo:", found.undo(), not found.done),
        ("Redo", "redo", ":material/redo:", found.redo(), not undone),
        ("Clear", "clear", ":material/clear_all:", found.clear(), not found.done),
    ):
        place.button(label, key=key, icon=icon, on_click=put, args=(to,), disabled=off)


def _listed(opened: Opened, reading: Reading, found: History) -> None:
    """Every edit in words; what was undone is said to be."""
    with st.container(height=LIST_HEIGHT, border=True, key="edits_made", gap="small"):
        if not found.edits:
            st.text("Nothing is changed yet. What you change below is listed here.")
        for place, edit in reversed(list(enumerate(found.edits))):  # the newest in sight
            with st.container(horizontal=True, vertical_alignment="center"):
                undone = "" if place < found.done else " (undone)"
                said = f"{place + 1}. {words(opened, reading, edit)}{undone}"
                st.container(width="stretch").text(said)
                st.button(
                    "Remove",
                    key=f"remove_{place}",
                    on_click=put,
                    args=(found.without(place),),
                    type="tertiary",
                )


def forms(opened: Opened, reading: Reading, passed: Reading) -> None:
    """What can be changed, one kind at a time; which head and layer, the sidebar says."""
    kind = one_of("Change", "change", KINDS)
    shown: dict[str, Callable[[Opened, Reading, Reading], None]] = {
        "Head": _head,
        "Layer": _layer,
        "Edge": _edge,
        "Mask": painting.mask,
        "Token": _token,
        "Patch": _patch,
    }
    shown[kind](opened, reading, passed)


def _to() -> str:
    return TO[one_of("Its output becomes", "becomes", tuple(TO))]


def _head(opened: Opened, reading: Reading, passed: Reading) -> None:
    at = session.choice()
    edit = AblateHead(at.part, at.layer, at.head, _to())
    button(f"Ablate layer {at.layer}, head {at.head}", edit, "ablate_head", type="primary")


def _layer(opened: Opened, reading: Reading, passed: Reading) -> None:
    at, to = session.choice(), _to()
    stack = at.part.split(".")[0]
    own = f"{stack}.self_attn"
    with st.container(horizontal=True):
        attention = AblateAttention(at.part, at.layer, to)
        button(f"Ablate the attention of layer {at.layer}", attention, "ablate_attention")
        mlp = AblateMlp(own, at.layer, to) if opened.config.d_ff else None
        button(f"Ablate the feed-forward of layer {at.layer}", mlp, "ablate_mlp")


def _edge(opened: Opened, reading: Reading, passed: Reading) -> None:
    at = session.choice()
    rows, columns = passed.rows(at.part), passed.columns(at.part)
    words = reading.part(at.part).words
    with st.container(horizontal=True):
        query = token("From (query)", "edge_query", rows, len(rows) - 1)
        key = token("To (key)", "edge_key", columns, 0)
    scope = one_of("In", "edge_in", (THIS_HEAD, ALL_HEADS))
    to = EDGE_TO[one_of("The edge becomes", "edge_becomes", tuple(EDGE_TO))]
    head = at.head if scope == THIS_HEAD else None
    if not bool(passed.mask(at.part, at.layer)[query, key]):
        st.text("This query may not look at this key, so there is no edge to cut.")
        return
    weight = float(passed.weights(at.part, at.layer, at.head)[query, key])
    said = words.cell.format(
        row=text_of(rows[query]), column=text_of(columns[key]), value=f"{weight:.3f}"
    )
    st.text(f"{said} in layer {at.layer}, head {at.head}.")
    edit = CutEdge(at.part, at.layer, head, query, key, to)
    button("Cut the edge", edit, "cut_edge", type="primary")
    st.caption("The other weights of the row stay as they are: they no longer add up to one.")


def token(label: str, key: str, tokens: Sequence[Token], default: int) -> int:
    """A token by its place and label; the address holds both, as 3 · cat."""
    names = [f"{place} · {text_of(each)}" for place, each in enumerate(tokens)]
    return names.index(one_of(label, key, names, names[default], as_list=True))


def _token(opened: Opened, reading: Reading, passed: Reading) -> None:
    stack = "encoder" if reading.source else "decoder"
    part = f"{stack}.self_attn"
    tokens = passed.source or passed.target
    place = min(int(st.session_state.get("_token_place", 1)), len(tokens) - 1)
    chips(tokens, key="token_to_change", highlight=place, on_pick=_pick_token)
    st.text(f"Token {place} is “{text_of(tokens[place])}”. Click another one to change that.")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        typed = st.text_input("Becomes", key="new_token", max_chars=60, placeholder="One token")
        number, why = one_token(opened, typed or "")
        edit = None if number is None else ReplaceToken(part, place, number)
        button("Replace", edit, "replace_token", type="primary")
        if (mask := opened.tokenizer.mask_id) is not None:
            button("Mask it", ReplaceToken(part, place, mask), "mask_token")
    if why:
        st.text(why)


def _pick_token(place: int) -> None:
    st.session_state["_token_place"] = place


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


def _patch(opened: Opened, reading: Reading, passed: Reading) -> None:
    at = session.choice()
    words = "A sentence of as many tokens; what the model makes of it there is put in here"
    other = st.text_input("Another sentence", key="patch_text", max_chars=LONGEST_TEXT, help=words)
    what = one_of("What is put in", "patch_what", (HEAD_OUT, STREAM))
    part = at.part if what == HEAD_OUT else f"{at.part.split('.')[0]}.self_attn"
    rows = reading.rows(part)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        place = token("At", "patch_at", rows, len(rows) - 1)
        head = at.head if what == HEAD_OUT else None
        edit = Patch(part, at.layer, head, place, other) if (other or "").strip() else None
        of = f"layer {at.layer}, head {at.head}" if head is not None else f"layer {at.layer}"
        button(f"Patch {of}", edit, "patch", type="primary")
