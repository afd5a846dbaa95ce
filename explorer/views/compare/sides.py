"""The second side of a comparison: another head, text, model, step, or the reader's edits."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.app.choosing import draw_page_link
from explorer.app.context import PageContext, config_of, opened_as_chosen, reads_pairs
from explorer.app.controls import follow, one_of, text_field
from explorer.app.messages import or_stop, say
from explorer.catalog.attention_parts import Part
from explorer.catalog.available_models import ModelEntry
from explorer.inference.edited_pass import EditedPass
from explorer.inference.forward_pass import (
    ForwardPass,
    ForwardPassError,
    encode_text,
    rerun,
    run_text,
)
from explorer.inference.readable_text import why_unreadable
from explorer.inference.results_cache import cached
from explorer.interventions.address_text import to_address
from explorer.interventions.edits import EditHistory
from explorer.views.interventions.intervention_effects import draw_example
from explorer.views.shared import widgets
from explorer.views.shared.edit_history import describe_edit, draw_answers, draw_history
from explorer.views.shared.map_pair import MapSide
from explorer.views.shared.training_snapshots import Snapshots, open_snapshot, snapshots_of

HEAD, SENTENCE, MODEL, STEP, EDITED = (
    "Another head",
    "Another sentence",
    "Another model",
    "A training step",
    "Your interventions",
)
LIST_WIDTH, NUMBER_WIDTH = 320, 150
SAME_HEAD = "Layer {}, head {}"


def choose_sides(context: PageContext) -> tuple[PageContext, MapSide, MapSide]:
    """The attention that is shown, the head chosen in the bar, and what it is compared with."""
    at = context.choice
    snapshots = snapshots_of(context)
    kinds: dict[str, Callable[[PageContext, MapSide, DeltaGenerator], MapSide]] = {
        HEAD: _another_head,
        SENTENCE: _another_sentence,
        MODEL: _another_model,
        **({STEP: partial(_another_step, snapshots=snapshots)} if snapshots else {}),
        EDITED: _with_interventions,
    }
    usual = SENTENCE if _other_text(context) != at.text else HEAD
    row = st.container(horizontal=True, vertical_alignment="center")
    with row:
        kind = one_of("with", tuple(kinds), usual, as_list=True, width=LIST_WIDTH)
    typed = _typed_parts(context.forward)
    if kind == MODEL and context.part not in typed and not _others_answer(context):
        context = widgets.shown_part(
            context, typed, "other models have only this attention on your text"
        )
        at = context.choice
    first = MapSide("", context.called, context.forward, *at.place)
    second = kinds[kind](context, first, row)
    is_step = kind == STEP and str(at.training_step) in snapshots
    title = f"Step {at.training_step}" if is_step else SAME_HEAD.format(at.layer, at.head)
    return context, replace(first, title="Your sentence" if kind == SENTENCE else title), second


def _another_head(context: PageContext, first: MapSide, row: DeltaGenerator) -> MapSide:
    part = context.part
    narrow = {"as_list": True, "width": NUMBER_WIDTH}
    layers, heads = ([str(n) for n in range(count)] for count in (part.layers, part.heads))
    with row:
        layer = one_of("other_layer", layers, str(first.layer), **narrow)
        head = one_of("other_head", heads, heads[(first.head + 1) % part.heads], **narrow)
    return replace(first, title=SAME_HEAD.format(layer, head), layer=int(layer), head=int(head))


def _another_sentence(context: PageContext, first: MapSide, row: DeltaGenerator) -> MapSide:
    at, usual = context.choice, _other_text(context)
    follow("other_text", usual)
    with row:
        text = text_field("other_text", usual, label_visibility="collapsed")
    if at.pair:
        st.text("The second sentence is the same on both sides.")
    forward = or_stop(lambda: run_text(context.opened, text, at.pair))
    return replace(first, title="Other sentence", forward=forward)


def _other_text(context: PageContext) -> str:
    """The first example of the model with as many tokens as the text, else the text itself."""
    at, opened = context.choice, context.opened

    def count(text: str) -> int:
        try:
            return len(encode_text(opened.tokenizer, opened.config, text, at.pair))
        except ForwardPassError:
            return 0

    others = (text for text in context.models[at.model].examples if text != at.text)
    return next((text for text in others if count(text) == count(at.text)), at.text)


def _another_model(context: PageContext, first: MapSide, row: DeltaGenerator) -> MapSide:
    mine, at = context.opened.config, context.choice

    def is_other_kind(entry: ModelEntry) -> bool:
        config = config_of(entry)
        return (config.kind, config.head) != (mine.kind, mine.head)

    fault = partial(_fault, context)
    others = [entry for name, entry in context.models.items() if name != at.model]
    others = sorted(others, key=is_other_kind)
    if not others:
        say("There is no other model here: train one, or open one on the Models page.")
        st.stop()
    reader = next((entry for entry in others if not fault(entry)), None)
    names, usual = [entry.name for entry in others], (reader or others[0]).name
    with row:
        name = one_of("other_model", names, usual, as_list=True, width=LIST_WIDTH)
    entry = context.models[name]
    if lacks := fault(entry):
        none = "No other model reads the whole text: type another one."
        advice = f"To compare the whole text, choose {reader.title}." if reader else none
        say(f"{lacks} {advice}")
    opened = or_stop(lambda: opened_as_chosen(entry, at))
    pair = _pair_for(entry, context)
    if pair != at.pair:
        st.text(f"{entry.title} reads one sentence: the second one is left out there.")
    try:
        forward = run_text(opened, at.text, pair)
    except ForwardPassError as error:
        if not lacks:
            say(str(error))
        st.stop()
    return _same_head_in(first, forward, entry)


def _others_answer(context: PageContext) -> bool:
    """Whether another encoder-decoder reads the text, so that answers can be compared."""
    others = (entry for name, entry in context.models.items() if name != context.choice.model)
    return any(config_of(of).kind == "encoder-decoder" and not _fault(context, of) for of in others)


def _fault(context: PageContext, entry: ModelEntry) -> str:
    """Why the model does not read the whole text; empty if it does."""
    at = context.choice
    return why_unreadable(entry, at.text, _pair_for(entry, context), reads_prompts=at.special)


def _pair_for(entry: ModelEntry, context: PageContext) -> str:
    """The second sentence, for a model that reads two."""
    return context.choice.pair if reads_pairs(entry) else ""


def _another_step(
    context: PageContext, first: MapSide, row: DeltaGenerator, snapshots: Snapshots
) -> MapSide:
    """The same tokens through a snapshot; an encoder-decoder's decoder reads the same answer."""
    opened, forward = context.opened, first.forward
    with row:
        step = one_of("other_step", tuple(snapshots), as_list=True, width=LIST_WIDTH)
    folder = snapshots[step]
    snapshot = or_stop(lambda: open_snapshot(opened, folder))
    if forward.output_tokens:
        whose = context.called
        st.text(f"On both sides the decoder reads the answer of {whose} (teacher forcing).")
    second = cached(
        snapshot,
        ("tokens of another step", forward.text, forward.pair, forward.target),
        lambda: rerun(snapshot, forward, forward.source, forward.target, ()),
        lambda result: result.bytes,
    )
    return replace(first, title=f"Step {step}", model=f"Step {step}", forward=second)


def _with_interventions(context: PageContext, first: MapSide, row: DeltaGenerator) -> MapSide:
    with row:
        with st.popover("Undo or remove"):
            history, edited = draw_history(context)
        draw_page_link("interventions")
        draw_example(context, history)
    if not history.edits:
        st.text("There are no interventions yet, so both sides are the same pass: try the example.")
    elif first.forward.output_tokens:
        draw_answers(context.opened, EditedPass(first.forward), edited)
    about = {}
    if edited.applied:
        words = [describe_edit(context.opened, context.forward, edit) for edit in edited.applied]
        address = to_address(EditHistory(edited.applied, len(edited.applied)))
        about = {
            "interventions of the second": "; ".join(words),
            "the same in an address": f"edits={address}",
        }
    return replace(first, title="With your interventions", forward=edited.forward, about=about)


def _same_head_in(first: MapSide, forward: ForwardPass, entry: ModelEntry) -> MapSide:
    """The same head in another model's pass, or the nearest one if that has no such head.

    If the chosen attention is over the typed text alone, so is that of the other model.
    """
    parts = forward.parts
    if first.part in (part.name for part in _typed_parts(first.forward)):
        parts = _typed_parts(forward)
    part = {part.name: part for part in parts}.get(first.part) or parts[-1]
    layer, head = min(first.layer, part.layers - 1), min(first.head, part.heads - 1)
    if (part.name, layer, head) != (first.part, first.layer, first.head):
        nearest = f"{part.words.name.lower()}, layer {layer}, head {head}"
        st.text(f"{entry.title} has no such head; showing its {nearest}.")
    return MapSide(entry.title, entry.title, forward, part.name, layer, head)


def _typed_parts(forward: ForwardPass) -> tuple[Part, ...]:
    """The kinds of attention whose queries and keys are tokens of the typed text."""
    return forward.parts[: 1 if forward.config.kind == "encoder-decoder" else None]
