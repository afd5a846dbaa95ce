"""The Overview page's picture of the pass: its selection, its links, its lens, its export."""

from dataclasses import astuple
from functools import partial

import streamlit as st
import torch

from explorer.analysis.block_inside import block_inside
from explorer.analysis.information_flow import (
    first_answer,
    information_flow,
    is_computable,
    route,
)
from explorer.app import widget_state
from explorer.app.address import whole_number
from explorer.app.context import PageContext
from explorer.charts.figure_data import Figure, TableData
from explorer.components.fragment import fragment
from explorer.components.mounting import asks_for, neighbour
from explorer.components.pass_map import (
    PassMap,
    block_panel,
    encode,
    encode_block,
    lens_rows,
    other_answers,
    pass_map,
)
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import cached
from explorer.text.number_format import percent, three
from explorer.text.token_labels import named_at, texts
from explorer.views.attention.score_sources_view import HeadCell, quick_sources_in_words
from explorer.views.overview import map_choices, pass_picture
from explorer.views.overview.map_choices import MapSelection
from explorer.views.overview.print_map import PrintedMap
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.pinned import current_pin
from explorer.views.shared.widgets import ANSWER

KEY = "pass_map"


def draw_map(context: PageContext) -> PassMap | None:
    """The picture; None, and the page says why, if the text is too long for one."""
    opened, forward = context.opened, context.forward
    if not is_computable(forward):
        st.text(pass_picture.too_long(forward))
        return None
    picture = pass_picture.picture_of(opened, forward)
    usual = first_answer(opened, forward)
    selection = map_choices.current_selection(context, picture, usual)
    continuations = pass_picture.continuations(opened, forward)
    edited = ", with interventions" if forward.edits else ""
    title = f"{opened.title}: the forward pass over “{forward.text}”{edited}"
    appends = [bool(text) for text in continuations]
    message = cached(
        opened,
        ("message of the map", *forward.key),
        lambda: encode(picture, KEY, title, usual, appends),
        len,
    )
    pass_map(
        message,
        key=KEY,
        title=title,
        choice=map_choices.choice_of(selection, context, picture),
        on_chosen=lambda value: map_choices.select_reported(value, picture, usual),
        on_go=partial(map_choices.open_link, context),
        appends=appends,
        on_append=lambda option: _append(context, continuations[option]),
        figures=lambda: figures(
            picture, selection, f"{title} · {_answer_in_words(context, picture, selection)}"
        ),
    )
    if selection.block is not None:
        _draw_block(context, picture, *selection.block)
    return picture


def _draw_block(context: PageContext, picture: PassMap, stack: int, layer: int) -> None:
    """The inside of the open block; its message is computed once."""
    opened, forward = context.opened, context.forward
    names = [stack.name for stack in picture.stacks]

    def make() -> bytes:
        inside = block_inside(forward, names[stack], layer)
        heads = forward.config.n_heads
        return encode_block(inside, picture.of, names, heads, map_choices.link_of_stage)

    key = "inside of a block", *forward.key, stack, layer
    message = cached(opened, key, make, len)
    block_panel(KEY, message, picture.of, (stack, layer), context.choice.head)


@fragment()
def draw_late(context: PageContext, picture: PassMap) -> None:
    """Why the chosen edge's head attends there, the answers of all positions, then the logit lens.

    If the last two are not computed yet, the browser asks for a run of their own.
    """
    pin, at, forward = current_pin(context), context.choice, context.forward
    if pin.query is not None and pin.key is not None:
        cell = HeadCell(*at.place, pin.query, pin.key)
        why = quick_sources_in_words(context.opened, forward, cell)
        query = named_at(forward.rows(at.part.replace("cross", "self")), pin.query)
        key = named_at(forward.columns(at.part), pin.key)
        words = f"The score compares what {query} looks for with what {key} offers. {why}"
        weight = percent(float(forward.weights(*at.place)[pin.query, pin.key]))
        neighbour(f"{KEY}-why", [picture.of, *astuple(cell), weight, words])
    if not picture.has_lens:
        return
    is_requested = asks_for(KEY, picture.of)
    opened = context.opened
    if is_requested or pass_picture.lens_is_cached(opened, forward):
        other_answers(KEY, pass_picture.all_answers(opened, forward), picture.of)
        for first, rows in pass_picture.lens_by_layer(opened, forward):
            lens_rows(KEY, first, rows, picture.of)


def code(context: PageContext, *, has_edges: bool) -> Script:
    """The code of the chosen head and the output, and of the edges if there is a picture."""
    at, forward = context.choice, context.forward
    head = script(head_code, forward, *at.place)
    if not has_edges:
        return head
    usual = first_answer(context.opened, forward)
    answer = whole_number(str(ANSWER.texts().get("answer", "")))
    return head + script(edges_code, forward, at.part, usual if answer is None else answer)


def head_code(forward: ForwardPass, part: str, layer: int, head: int) -> None:
    weights = forward.weights(part, layer, head)
    print(weights)  # a row per query, a column per key
    print(forward.answer)


def edges_code(forward: ForwardPass, part: str, answer: int) -> None:
    flow = information_flow(forward)
    traced = route(flow, flow.starts[answer])
    edges = traced.edges[part]  # layers, queries, keys
    for value, place in zip(*edges.flatten().topk(min(10, edges.numel())), strict=True):
        at, query, key = (int(i) for i in torch.unravel_index(place, edges.shape))
        shares = flow.stacks[part.split(".")[0]][at].attentions[part]
        print(f"layer {at}, head {int(shares.heads[query, key])}: key {key} -> query {query}")
        print(f"share {shares.keys[query, key]:.3g}, of the answer {value:.3g}")


def _append(context: PageContext, text: str) -> None:
    """For the callback: make this the text; a prompt stays a prompt."""
    widget_state.put("text", text)
    if context.choice.special:
        widget_state.put("special", text)
    ANSWER.put("answer", "")
    map_choices.IN_ADDRESS.put("traced", "")


def figures(picture: PassMap, selection: MapSelection, title: str) -> list[Figure]:
    """The edges that lead to the answer, the strongest first, and the picture of them."""
    traced = route(picture.flow, picture.flow.starts[selection.answer])
    tokens = {stack.name: texts(stack.tokens) for stack in picture.stacks}
    rows = []
    for part, edges in traced.edges.items():
        stack = part.split(".")[0]
        keys = tokens["encoder" if part.endswith("cross_attn") else stack]
        blocks = picture.flow.stacks[stack]
        for layer, query, key in (edges >= selection.least).nonzero().tolist():
            shares = blocks[layer].attentions[part]
            rows.append(
                (
                    part,
                    layer,
                    int(shares.heads[query, key]),
                    f"{query} {tokens[stack][query]}",
                    f"{key} {keys[key]}",
                    float(shares.keys[query, key]),
                    float(edges[layer, query, key]),
                )
            )
    rows.sort(key=lambda row: -row[-1])
    names = ("attention", "layer", "head", "query", "key", "share", "importance")
    columns = {name: [row[at] for row in rows] for at, name in enumerate(names)}
    spec = PrintedMap(picture, traced, selection.least).chart(selection.answer)
    return [TableData(columns, title, spec=spec)]


def _answer_in_words(context: PageContext, picture: PassMap, selection: MapSelection) -> str:
    """The answer that the picture leads to, and its score."""
    if not picture.answers:
        return f"edges to answer {selection.answer}"
    known = picture.answers
    if selection.answer not in known:
        known = dict(enumerate(pass_picture.all_answers(context.opened, context.forward)))
    token, score = known[selection.answer].options[0]
    return f"what led to “{token}”: {picture.score} {three(score)}"
