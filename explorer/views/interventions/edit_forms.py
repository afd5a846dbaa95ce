"""The forms that add an intervention, one kind at a time."""

from typing import Any, NamedTuple

import streamlit as st
import torch
from streamlit.delta_generator import DeltaGenerator

from explorer.app.address import whole_number
from explorer.app.choosing import draw_page_link
from explorer.app.context import PageContext
from explorer.app.controls import (
    note_invalid,
    one_of,
    say_invalid,
    slider,
    text_field,
    token,
    whole,
)
from explorer.app.persistent_choices import PersistentChoices
from explorer.components.chips import chips
from explorer.components.picker import cells
from explorer.inference.answers import one_token, shown_place
from explorer.inference.core_edits import token_label
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.mask_examples import YOURS
from explorer.inference.token_programs import PREDICATES
from explorer.interventions.edits import (
    AblateAttention,
    AblateHead,
    AblateMlp,
    CutEdge,
    HideKey,
    MaskCell,
    Patch,
    PresetMask,
    ReplaceByProgram,
    ReplaceToken,
    Steer,
)
from explorer.text.number_format import three
from explorer.text.token_labels import label_at, named_at, texts
from explorer.text.visible_text import cut, in_quotes, literal
from explorer.views.shared import pinned, widgets
from explorer.views.shared.edit_history import add_intervention, edit_button

ABLATE_TO = {"Zero": "zero", "Mean over positions": "mean"}
CUT_TO = {"Zero": "zero", "Mean over queries": "mean"}
THIS_HEAD, ALL_HEADS = "This head", "Every head of the layer"
STREAM, HEAD_OUTPUT = "Residual stream after the layer", "Head output"
THIS_LAYER, EVERY_LAYER = "This layer", "Every layer"
PRESETS = {
    "None": "none",
    "Causal": "causal",
    "Padding": "padding",
    "Sliding window": "window",
    "Prefix": "prefix",
    "Blocks": "blocks",
}
SIZED = ("padding", "window", "prefix", "blocks")
PRESET, KEY, CELLS = "Preset", "One key", "Cell by cell"
MOST_PAINTED = 96
"""Tokens per side whose cells a finger or a pointer can still hit."""
OF_TEXTS = "Difference of two texts"
LIST, OF_QUERIES, OF_KEYS, SHORT = 130, 166, 150, 110
"""Pixels of a list in the row; those of tokens have their labels in them."""
UNLABELLED: dict[str, Any] = {"width": LIST, "label_visibility": "collapsed"}
TOKEN_AT = PersistentChoices("token_at", {"token_at": ""})


class FormPlaces(NamedTuple):
    """Where a form draws what its row has no room for: a picture to click, sentences."""

    picture: DeltaGenerator
    notes: DeltaGenerator


def draw_edit_form(context: PageContext, after: ForwardPass, places: FormPlaces) -> None:
    """The form of one kind of intervention in a row, for the head and layer of the bar.

    `after` is the pass with the interventions so far.
    """
    kind = one_of("change", tuple(FORMS), as_list=True, width=100, label_visibility="collapsed")
    FORMS[kind](context, after, places)


def _choose_ablation() -> str:
    return ABLATE_TO[one_of("becomes", tuple(ABLATE_TO), label_visibility="collapsed")]


def _draw_head_form(context: PageContext, after: ForwardPass, places: FormPlaces) -> None:
    at = context.choice
    edit = AblateHead(at.part, at.layer, at.head, _choose_ablation())
    label = f"Ablate layer {at.layer}, head {at.head}"
    edit_button(context, edit, label, "ablate_head", type="primary")


def _draw_layer_form(context: PageContext, after: ForwardPass, places: FormPlaces) -> None:
    at, to = context.choice, _choose_ablation()
    own = f"{at.part.split('.')[0]}.self_attn"
    attention = AblateAttention(at.part, at.layer, to)
    edit_button(context, attention, f"Ablate the attention of layer {at.layer}", "ablate_attention")
    mlp = AblateMlp(own, at.layer, to) if context.opened.config.d_ff else None
    edit_button(context, mlp, f"Ablate the feed-forward of layer {at.layer}", "ablate_mlp")


def _draw_edge_form(context: PageContext, after: ForwardPass, places: FormPlaces) -> None:
    at, cell = context.choice, pinned.in_text(context, after)
    rows, columns = after.rows(at.part), after.columns(at.part)
    last = len(rows) - 1 if cell.query is None else cell.query
    query = token("edge_query", rows, last, width=OF_QUERIES)
    row = after.weights(at.part, at.layer, at.head)[query]
    largest = int(row.argmax()) if cell.key is None else cell.key
    key = token("edge_key", columns, largest, width=OF_KEYS)
    how = UNLABELLED | {"as_list": True, "width": SHORT}
    scope = one_of("edge_in", (THIS_HEAD, ALL_HEADS), **how)
    to = CUT_TO[one_of("edge_becomes", tuple(CUT_TO), **how)]
    if not after.mask(at.part, at.layer)[query, key]:
        places.notes.text("This key is masked for this query, so there is no edge to cut.")
        return
    weight = float(row[key])
    words = after.part(at.part).words.cell.format(
        row=label_at(rows, query), column=label_at(columns, key), value=three(weight)
    )
    edit = CutEdge(at.part, at.layer, at.head if scope == THIS_HEAD else None, query, key, to)
    edit_button(context, edit, "Cut the edge", "cut_edge", type="primary")
    others = three(float(row.sum()) - weight)
    places.notes.caption(
        f"{literal(words)} in layer {at.layer}, head {at.head}. "
        f"The other weights of the row stay as they are: in this head they sum to {others}."
    )


def _draw_token_form(context: PageContext, after: ForwardPass, places: FormPlaces) -> None:
    opened, at, cell = context.opened, context.choice.part, pinned.in_text(context, after)
    part = "encoder.self_attn" if after.source else "decoder.self_attn"
    tokens = after.source or after.target
    query = cell.query if after.rows(at) is tokens else None  # pinned in its rows and columns
    key = cell.key if after.columns(at) is tokens else None
    position = usual = next(at for at in (query, key, min(1, len(tokens) - 1)) if at is not None)
    chosen = str(TOKEN_AT.texts().get("token_at", ""))
    place = whole_number(chosen, len(tokens))
    if place is not None:
        position = place
    elif chosen:
        why = f"There is no token “{cut(chosen, 20)}” in this text; showing {usual}."
        note_invalid("token_at", usual, why)
    TOKEN_AT.settle({"token_at": "" if place is None else str(place)})
    say_invalid("token_at", position)
    with places.picture:
        chips(
            tokens,
            key="token_to_change",
            highlight=position,
            on_pick=lambda place: TOKEN_AT.put("token_at", str(place)),
        )
    name = in_quotes(label_at(tokens, position))
    places.notes.text(f"Token {position} is {name}. Choose another one to replace it.")

    def replace_by(token_id: int) -> ReplaceToken:
        return ReplaceToken(part, position, token_id, token_label(opened, token_id))

    typed = text_field("new_token", placeholder="Replace with one token", **UNLABELLED)
    token_id, why = one_token(opened, typed)
    edit = None if token_id is None else replace_by(token_id)
    edit_button(context, edit, "Replace", "replace_token", type="primary")
    if (mask := opened.tokenizer.mask_id) is not None:
        edit_button(context, replace_by(mask), "Mask it", "mask_token")
    if why:
        places.notes.text(why)


def _draw_patch_form(context: PageContext, after: ForwardPass, places: FormPlaces) -> None:
    at = context.choice
    explanation = (
        "Activation patching: the value of this sentence at that place replaces the value of yours."
    )
    hint = "From another sentence"
    source = text_field("patch_text", help=explanation, placeholder=hint, **UNLABELLED)
    what = one_of("patch_what", (HEAD_OUTPUT, STREAM), as_list=True, **UNLABELLED)
    is_head = what == HEAD_OUTPUT
    part = at.part if is_head else f"{at.part.split('.')[0]}.self_attn"
    rows = context.forward.rows(part)
    *_, last = (at for at, name in enumerate(rows) if not name.special or at == 0)
    if context.forward.output_tokens and not part.startswith("encoder"):
        last = shown_place(context.opened, rows)  # a later position would change nothing there
    position = token("patch_at", rows, last, width=LIST)
    head = at.head if is_head else None
    edit = Patch(part, at.layer, head, position, source) if source.strip() else None
    of = f"layer {at.layer}, head {at.head}" if is_head else f"layer {at.layer}"
    edit_button(context, edit, f"Patch {of}", "patch", type="primary")


def _draw_steering_form(context: PageContext, after: ForwardPass, places: FormPlaces) -> None:
    at = context.choice
    places.notes.caption(
        "A direction is added to the residual stream after the layer, at every position: the "
        "difference of two texts, or what the head writes on one text. A strength of 1 adds it "
        "once, a negative one subtracts it."
    )
    kind = one_of("steer_by", (OF_TEXTS, HEAD_OUTPUT), as_list=True, **UNLABELLED)
    toward = text_field("steer_toward", placeholder="Towards this text", **UNLABELLED)
    away = ""
    if kind == OF_TEXTS:
        away = text_field("steer_away", placeholder="Away from this text", **UNLABELLED)
    strength = slider("steer_strength", width=110, label_visibility="collapsed")
    texts = (toward,) if kind == HEAD_OUTPUT else (toward, away)
    part = at.part if kind == HEAD_OUTPUT else f"{at.part.split('.')[0]}.self_attn"
    head, is_typed = at.head if kind == HEAD_OUTPUT else None, all(map(str.strip, texts))
    edit = Steer(part, at.layer, head, strength, texts) if is_typed else None
    edit_button(context, edit, f"Steer after layer {at.layer}", "steer", type="primary")


def _draw_program_form(context: PageContext, after: ForwardPass, places: FormPlaces) -> None:
    at = context.choice
    hint = "nearest key is capital and before query"
    how: dict[str, Any] = {"width": 300, "label_visibility": "collapsed"}
    program = text_field("head_program", placeholder=hint, **how).strip()
    edit = ReplaceByProgram(at.part, at.layer, at.head, ((program, 1.0),)) if program else None
    label = f"Replace the map of layer {at.layer}, head {at.head}"
    edit_button(context, edit, label, "replace_map", type="primary")
    places.notes.caption(f"A name of a program, as on All heads, or your own: {PREDICATES}.")


def _draw_mask_form(context: PageContext, after: ForwardPass, places: FormPlaces) -> None:
    """One of three ways to change which keys a query may attend to."""
    way = one_of("mask_how", (PRESET, KEY, CELLS), label_visibility="collapsed")
    scope = one_of("mask_where", (THIS_LAYER, EVERY_LAYER), as_list=True, **UNLABELLED)
    at = context.choice
    layer = at.layer if scope == THIS_LAYER else None
    if way == PRESET:
        _draw_preset_form(context, layer, places)
    elif way == KEY:
        key = token("mask_key", after.columns(at.part), 0, width=LIST)
        label = "Mask it for every query"
        edit_button(context, HideKey(at.part, layer, key), label, "hide_key", type="primary")
    else:
        _draw_cells_form(context, after, layer, places)
    with places.notes:
        masked = (~after.mask(at.part, at.layer).any(-1)).nonzero()[:, 0].tolist()
        if masked:
            named = ", ".join(named_at(after.rows(at.part), query) for query in masked[:6])
            more = f" and {len(masked) - 6} more" if len(masked) > 6 else ""
            st.text(f"Every key is masked, so attention gives zeros: {named}{more}.")
        draw_page_link("masks", "What masks do to the scores", example=YOURS)


def _draw_preset_form(context: PageContext, layer: int | None, places: FormPlaces) -> None:
    part = context.choice.part
    is_cross = part == "decoder.cross_attn"
    if is_cross:
        places.notes.text(
            "Queries and keys are of two texts here, so only these presets make sense."
        )
    names = ["None", "Padding"] if is_cross else list(PRESETS)
    preset = PRESETS[one_of("mask_preset", names, as_list=True, **UNLABELLED)]
    size = 1
    if preset in SIZED:
        size = whole("mask_size", width=120, label_visibility="collapsed")
    edit = PresetMask(part, layer, preset, size)
    edit_button(context, edit, "Set the mask", "set_mask", type="primary")
    if preset == "padding":
        places.notes.caption("The last tokens count as padding, as in a batch with a longer text.")


def _draw_cells_form(
    context: PageContext, after: ForwardPass, layer: int | None, places: FormPlaces
) -> None:
    at, opened, forward = context.choice, context.opened, context.forward
    rows, columns = after.rows(at.part), after.columns(at.part)
    allowed = after.mask(at.part, at.layer)

    def flip(query: int, key: int) -> MaskCell:
        return MaskCell(at.part, layer, query, key, not bool(allowed[query, key]))

    if max(allowed.shape) > MOST_PAINTED:
        places.notes.text(f"With more than {MOST_PAINTED} tokens, choose the cell from lists.")
        query = token("cell_query", rows, len(rows) - 1, width=LIST)
        key = token("cell_key", columns, 0, width=LIST)
        edit = flip(query, key)
        edit_button(context, edit, "Unmask" if edit.allowed else "Mask", "set_cell", type="primary")
        return
    weights = after.weights(at.part, at.layer, at.head)
    places.notes.caption(
        "Choose a cell to mask or unmask it. Colours are the weights of the chosen head."
    )
    with places.picture:
        cells(
            weights.masked_fill(~allowed, torch.nan),
            texts(rows),
            texts(columns),
            key="paint",
            title=widgets.head_title(context),
            selected=None,
            on_pick=lambda query, key: add_intervention(opened, forward, flip(query, key)),
            row_name="query",
            column_name="key",
            sentence="{row} attends to {column}: {value}",
            unit="weight",
            absent="masked",
            top=1.0,
        )


FORMS = {
    "Head": _draw_head_form,
    "Layer": _draw_layer_form,
    "Edge": _draw_edge_form,
    "Mask": _draw_mask_form,
    "Token": _draw_token_form,
    "Patch": _draw_patch_form,
    "Steer": _draw_steering_form,
    "Program": _draw_program_form,
}
