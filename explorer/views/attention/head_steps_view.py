"""One head step by step: its stages and the pinned cell; and what masks do to its scores."""

import math
from dataclasses import replace
from typing import Any

import streamlit as st
import torch
from torch import Tensor

from explorer.analysis.adjusted_weights import CLOSE
from explorer.analysis.query_key import (
    HeadStages,
    head_stages_of,
    strongest,
    strongest_cell,
)
from explorer.app import address
from explorer.app.choosing import draw_page_link
from explorer.app.context import PageContext
from explorer.app.controls import number, one_of
from explorer.app.messages import or_stop
from explorer.app.session import session
from explorer.catalog.attention_parts import site
from explorer.catalog.opened_model import OpenModel
from explorer.components.events import Place
from explorer.components.matrix import matrix
from explorer.components.stages import Node, Panel
from explorer.components.stages import stages as view
from explorer.inference import mask_examples
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.mask_examples import Masks, Pictures, padded
from explorer.text.number_format import three
from explorer.text.token_labels import named_at
from explorer.views.shared import pass_position, pinned, widgets
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.pinned import PinnedCell
from models.masking import causal_mask

UP_TO = {
    "scores": "Query: what a token looks for; key: what one offers; Q Kᵀ: how well they match.",
    "scaled": "The scores, scaled so that they do not grow with the number of dimensions.",
    "masked": "The mask M is added: −∞ where a token may not read another.",
    "softmax": "The softmax turns each row of scores into weights: the higher a score, the larger.",
    "values": "The values (what tokens pass on) are averaged with these weights.",
}
"""The steps of a head, and what one sees up to each."""
FIRST_STEP = {"dots": 0, "scaled": 1, "added": 2, "logits": 2, "weights": 3, "v": 4, "out": 4}
"""The step of `UP_TO` from which a tensor is drawn; queries and keys are always drawn."""
LABELLED = ("dots", "q", "k", "v", "out")
WINDOW_TOKENS = 32
"""The most queries and keys whose cells are large enough to read."""


def draw_stages(context: PageContext) -> None:
    """Draw the page for the chosen head."""
    at, forward, words = context.choice, context.forward, context.part.words
    rows, columns = forward.rows(at.part), forward.columns(at.part)
    cell = pinned.current_pin(context)
    query, key = strongest_cell(forward, *at.place)
    if cell.query not in (None, query):
        query, key = cell.query, strongest(forward, *at.place, cell.query)
    key = key if cell.key is None else cell.key
    step = [*UP_TO].index(one_of("up_to", [*UP_TO], width="content"))
    figure = st.container()
    down = _window("queries", len(rows), query)
    across = _window("keys", len(columns), key)
    head = head_stages_of(forward, *at.place, down, across)

    def pin_in_window(place: Place | None) -> None:
        pinned.pin(PinnedCell() if place is None else PinnedCell(down[place[0]], across[place[1]]))

    is_inside = query in down and key in across
    with figure:
        view(
            stage_panels(head, step),
            rows[down.start : down.stop],
            columns[across.start : across.stop],
            stage_equation(head),
            key="stages",
            title=widgets.head_title(context),
            spoken=spoken_equation(head),
            about=_about(head, len(rows), len(columns)),
            sentence=words.cell,
            masked_sentence="{column} is masked for {row}: the score becomes −∞, the weight 0",
            pinned=(query - down.start, key - across.start) if is_inside else None,
            on_pin=pin_in_window,
        )
    widgets.notes(pinned.row_note(forward, at.part, query))
    if session().pages:  # a page that runs alone has no links
        pass_position.forward_pass_link(context, PinnedCell(query, key))
        with st.container(horizontal=True, vertical_alignment="center"):
            draw_page_link("query_key", "Query and key of this cell")
            st.text(f"{named_at(rows, query)} → {named_at(columns, key)}")
    widgets.check("The weights, from these queries and keys", head.difference)


def stage_panels(head: HeadStages, step: int) -> list[Panel]:
    """The tensors in the order in which they are computed; those after the step are hidden."""
    d = head.q.shape[1]
    root, cap = _root(head), head.cap
    divided = f"× {three(head.scale)}, the model's own scale"
    if root:
        divided = f"÷ {root} = {three(1 / head.scale)}, the square root of the head width"
    capped = "" if cap is None else f", then capped at ± {three(cap)} by tanh"
    m = "0 where a query may attend to a key, −∞ where the key is masked."
    if head.has_bias:
        m = "the position bias where a query may attend to a key, −∞ where the key is masked."
    softmax = "Weights: the softmax of each row, over all keys."
    every = "all keys" if len(head.v) == len(head.columns) else "every key of the text"
    out = f"Head output for each query: the values of {every}, each times its weight."
    symbol = _sign(head) if cap is None else f"{_sign(head)}, tanh"
    panels = [
        Panel("dots", "Q Kᵀ", "Q Kᵀ: the dot product of every query with every key.", head.dots),
        Panel("scaled", symbol, f"{_product(head)}: the scores, {divided}{capped}.", head.scaled),
        Panel("logits", "+ M", "Scores + M: the input of the softmax.", head.logits),
        Panel("weights", "softmax", softmax, head.weights, scale="sequential", top=1.0),
        Panel("q", "query Q", f"Q: {d} dimensions for each row.", head.q, "query", "qk", 1),
        Panel("k", "key K", f"K: {d} dimensions for each column.", head.k, "key", "qk", 1),
        Panel("added", "mask M", f"M: {m}", head.added, line=1),
        Panel("v", "value V", "V: the value of each key.", head.v, "key", "vo", 1),
        Panel("out", "output", out, head.out, "query", "vo", 1),
    ]
    return [
        replace(panel, labels=panel.of in LABELLED, hidden=FIRST_STEP.get(panel.of, 0) > step)
        for panel in panels
    ]


def stage_equation(head: HeadStages) -> list[Node]:
    """softmax(Q Kᵀ / √d + M) V, each symbol with the name of its tensor; a cap adds a tanh.

    The scale of the rows, in models that have one, is r.
    """
    root = _root(head)
    product: Node = {
        "of": "dots",
        "parts": [{"of": "q", "parts": ["Q"]}, {"of": "k", "parts": ["Kᵀ"]}],
    }
    below: Node = {"of": "scaled", "parts": [root or f"1 / {three(head.scale)}"]}
    scaled: Node = {"of": "scaled", "kind": "fraction", "parts": [product, below]}
    if head.cap is not None:
        cap = three(head.cap)
        scaled = {"of": "scaled", "parts": [f"{cap} tanh ( ", scaled, f" / {cap} )"]}
    added: Node = {"of": "added", "parts": ["M"]}
    inner: Node = {"of": "logits", "kind": "sum", "parts": [scaled, " + ", added]}
    return [
        {"of": "out", "parts": ["head"]},
        " = ",
        {"of": "weights", "parts": ["r ⊙ " * head.scales_rows + "softmax (", inner, ")"]},
        {"of": "v", "parts": ["V"]},
    ]


def spoken_equation(head: HeadStages) -> str:
    """The equation as it is read aloud."""
    scale = "the scale of each row times " * head.scales_rows
    return f"head = {scale}softmax({_product(head)} + M) V"


def _root(head: HeadStages) -> str:
    """√d if the scores are divided by it; else empty."""
    width = head.q.shape[1]
    return f"√{width}" if math.isclose(head.scale, width**-0.5) else ""


def _product(head: HeadStages) -> str:
    """The scaled scores in one line."""
    product = f"Q Kᵀ {_sign(head)}"
    if head.cap is None:
        return product
    return f"{three(head.cap)} · tanh({product} ÷ {three(head.cap)})"


def _sign(head: HeadStages) -> str:
    root = _root(head)
    return f"÷ {root}" if root else f"× {three(head.scale)}"


def _about(head: HeadStages, rows: int, columns: int) -> str:
    if len(head.rows) == rows and len(head.columns) == columns:
        return ""
    return (
        f"{len(head.rows)} of {rows:,} queries and {len(head.columns)} of {columns:,} keys "
        "are shown; the softmax and the output are over all keys. "
    )


def _window(key: str, count: int, inside: int) -> range:
    """The part of a long text that is shown: around the pinned token, or as chosen."""
    if count <= WINDOW_TOKENS:
        return range(count)
    start = max(0, min(inside - WINDOW_TOKENS // 2, count - WINDOW_TOKENS))
    label = f"{address.row_of(key).label}: {WINDOW_TOKENS} from position"
    first = number(key, count - WINDOW_TOKENS, start, label=label)
    return range(first, first + WINDOW_TOKENS)


def steps_code(forward: ForwardPass, part: str, layer: int, head: int) -> None:
    queries, keys, values = (forward.trace[f"{site(part, layer)}.{name}"][0] for name in "qkv")
    group = forward.config.kv_head(head)
    q, k, v = queries[head], keys[group], values[group]
    dots = q @ k.mT
    scores = forward.scores(part, layer, head)  # times the scale, capped by tanh if there is a cap
    bias = forward.bias(part, layer, head)  # of the positions
    added = scores if bias is None else scores + bias
    masked = added.masked_fill(~forward.mask(part, layer), -torch.inf)
    weights = forward.weights(part, layer, head)  # the softmax of a row
    out = weights @ v
    print(dots, scores, masked, weights, out)


def draw_mask_example(context: PageContext, example: str) -> Script:
    """Draw the masks of this example, and what they do to the chosen head; return the code."""
    if example == mask_examples.STUDENT:
        draw_masks(mask_examples.student(), None, example)
        return script(student_code)
    at, forward = context.choice, context.forward
    is_batch = example == mask_examples.BATCH
    if is_batch:
        forward = or_stop(lambda: padded(context.opened, context.forward))[-1]
    pictures = mask_examples.pictures(forward, *at.place)
    draw_masks(mask_examples.of(forward, at.part, at.layer), pictures, widgets.head_title(context))
    if pictures.adds_bias:
        st.caption("The scores include the bias that positions add.")
    if is_batch and at.pair:
        st.text("The second sentence is left out of the batch.")
    widgets.notes(forward.notes)
    lines = script(masks_code, context.forward, *at.place)
    return script(batch_code, context.opened, context.forward) + lines if is_batch else lines


def draw_masks(masks: Masks, head: Pictures | None, of: str) -> None:
    """The three masks, that which masks most large; then a head's scores and weights.

    `of` begins the titles of the exported figures.
    """
    pictures: list[tuple[str, Tensor, str, dict[str, Any]]] = [
        (masks.ahead, masks.causal, "mask_causal", {"scale": "mask"}),
        ("Padding mask", masks.padding, "mask_padding", {"scale": "mask"}),
        ("Both combined", masks.both, "mask_both", {"scale": "mask"}),
    ]
    widths = (2, 1, 1) if masks.padding.all() else (1, 1, 2)
    if head is not None:
        what = "Scores with position bias" if head.adds_bias else "Scores"
        signed = {"scale": "diverging", "unit": "score", "top": float(head.scores.abs().max())}
        has_masked_rows = not masks.both.any(-1).all()
        is_scaled = bool((head.weights.sum(-1) < 1 - CLOSE)[masks.both.any(-1)].any())
        sums = f"Weights: rows sum to {'less than ' * is_scaled}1"
        sums += ", fully masked rows to 0" if has_masked_rows else ""
        pictures += [
            (what, head.scores, "scores", signed),
            (f"{what}, masked", head.scores, "masked", {"allowed": masks.both, **signed}),
            (sums, head.weights, "weights", {"allowed": masks.both, "top": 1.0}),
        ]
    labels = masks.rows, masks.columns
    for shares, row in (widths, pictures[:3]), ((1, 1, 1), pictures[3:]):
        places = widgets.side_by_side(*shares) if row else []
        for place, (title, values, key, how) in zip(places, row, strict=True):
            with place:
                matrix(values, *labels, key=key, title=f"{of} · {title}", heading=title, **how)


def student_code() -> None:
    mask = causal_mask(5)[0, 0]
    print(mask)  # True = may attend


def batch_code(opened: OpenModel, forward: ForwardPass) -> None:
    forward = padded(opened, forward)[-1]  # its beginning, in one batch with the whole


def masks_code(forward: ForwardPass, part: str, layer: int, head: int) -> None:
    scores = forward.scores(part, layer, head)
    bias = forward.bias(part, layer, head)  # of the positions
    scores = scores if bias is None else scores + bias
    mask = forward.mask(part, layer)  # True = may attend
    weights = forward.weights(part, layer, head)
    print(scores, mask, weights)
