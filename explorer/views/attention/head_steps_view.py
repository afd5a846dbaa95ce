"""The chosen head step by step: which stages are drawn, which part of a long text, which cell."""

import math
from dataclasses import replace

import streamlit as st
import torch

from explorer.analysis.query_key import HeadStages, head_stages_of, strongest
from explorer.app import address
from explorer.app.choosing import draw_page_link
from explorer.app.context import PageContext
from explorer.app.controls import number, one_of
from explorer.app.session import session
from explorer.catalog.attention_parts import site
from explorer.components.events import Place
from explorer.components.stages import Node, Panel
from explorer.components.stages import stages as view
from explorer.inference.forward_pass import ForwardPass
from explorer.text.number_format import three
from explorer.text.token_labels import named_at
from explorer.views.shared import pass_position, pinned, widgets
from explorer.views.shared.pinned import PinnedCell

UP_TO = ("scores", "scaled", "masked", "softmax", "values")
FIRST_SHOWN = {"dots": 0, "scaled": 1, "added": 2, "logits": 2, "weights": 3, "v": 4, "out": 4}
"""The step of `UP_TO` from which on a tensor is drawn; queries and keys are from the start."""
LABELLED = ("dots", "q", "k", "v", "out")
WINDOW_TOKENS = 32
"""So many queries and keys are large enough to be read beside each other."""


def draw_stages(context: PageContext) -> None:
    """The whole screen for the chosen head."""
    at, forward, words = context.choice, context.forward, context.part.words
    rows, columns = forward.rows(at.part), forward.columns(at.part)
    found = pinned.current_pin(context)
    query = len(rows) - 1 if found.query is None else found.query
    key = found.key
    if key is None:
        key = strongest(forward, *at.place, query)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.markdown(widgets.head_heading(context), width="stretch")
        step = UP_TO.index(one_of("up_to", UP_TO, UP_TO[-1], width="content"))
    down = _window("queries", len(rows), query)
    across = _window("keys", len(columns), key)
    made = head_stages_of(forward, *at.place, down, across)

    def pin_in_window(place: Place | None) -> None:
        pinned.pin(PinnedCell() if place is None else PinnedCell(down[place[0]], across[place[1]]))

    is_inside = query in down and key in across
    view(
        stage_panels(made, step),
        rows[down.start : down.stop],
        columns[across.start : across.stop],
        stage_equation(made),
        key="stages",
        title=widgets.head_title(context),
        spoken=spoken_equation(made),
        about=_about(made, len(rows), len(columns)),
        sentence=words.cell,
        masked_sentence="{column} is masked for {row}: the score becomes −∞, the weight 0",
        pinned=(query - down.start, key - across.start) if is_inside else None,
        on_pin=pin_in_window,
    )
    again = "The weights, recomputed in float64 from these queries and keys"
    st.caption(widgets.recomputed(again, made.difference))
    widgets.notes(pinned.read_and_written(forward, at.part, query))
    if not session().pages:  # a page that is run alone has no others
        return
    pass_position.forward_pass_link(context, PinnedCell(query, key))
    with st.container(horizontal=True, vertical_alignment="center"):
        draw_page_link("query_key", "Query and key of this cell")
        st.text(f"{named_at(rows, query)} → {named_at(columns, key)}")


def stage_panels(found: HeadStages, step: int) -> list[Panel]:
    """The tensors in the order they are made; those after the step are hidden."""
    d = found.q.shape[1]
    root, cap = _root(found), found.cap
    divided = f"× {three(found.scale)}, the model's own scale"
    if root:
        divided = f"÷ {root} = {three(1 / found.scale)}, the square root of the head width"
    capped = "" if cap is None else f", then capped at ± {three(cap)} by tanh"
    m = "0 where a query may attend to a key, −∞ where the key is masked."
    if found.has_bias:
        m = "the position bias where a query may attend to a key, −∞ where the key is masked."
    softmax = "Weights: the softmax of each row, over all keys."
    every = "all keys" if len(found.v) == len(found.columns) else "every key of the text"
    out = f"Head output for each query: the values of {every}, each times its weight."
    symbol = _sign(found) if cap is None else f"{_sign(found)}, tanh"
    made = [
        Panel("dots", "Q Kᵀ", "Q Kᵀ: the dot product of every query with every key.", found.dots),
        Panel("scaled", symbol, f"{_product(found)}: the scores, {divided}{capped}.", found.scaled),
        Panel("logits", "+ M", "Scores + M: the input of the softmax.", found.logits),
        Panel("weights", "softmax", softmax, found.weights, scale="sequential", top=1.0),
        Panel("q", "Q", f"Q: a query of {d} dimensions for each row.", found.q, "query", "qk", 1),
        Panel("k", "K", f"K: a key of {d} dimensions for each column.", found.k, "key", "qk", 1),
        Panel("added", "M", f"M: {m}", found.added, line=1),
        Panel("v", "V", "V: the value of each key.", found.v, "key", "vo", 1),
        Panel("out", "head", out, found.out, "query", "vo", 1),
    ]
    return [
        replace(panel, labels=panel.of in LABELLED, hidden=FIRST_SHOWN.get(panel.of, 0) > step)
        for panel in made
    ]


def stage_equation(found: HeadStages) -> list[Node]:
    """softmax(Q Kᵀ / √d + M) V, each symbol with the name of its tensor; a cap bends by tanh."""
    root = _root(found)
    product: Node = {
        "of": "dots",
        "parts": [{"of": "q", "parts": ["Q"]}, {"of": "k", "parts": ["Kᵀ"]}],
    }
    below: Node = {"of": "scaled", "parts": [root or f"1 / {three(found.scale)}"]}
    scaled: Node = {"of": "scaled", "kind": "fraction", "parts": [product, below]}
    if found.cap is not None:
        cap = three(found.cap)
        scaled = {"of": "scaled", "parts": [f"{cap} tanh ( ", scaled, f" / {cap} )"]}
    added: Node = {"of": "added", "parts": ["M"]}
    inner: Node = {"of": "logits", "kind": "sum", "parts": [scaled, " + ", added]}
    return [
        {"of": "out", "parts": ["head"]},
        " = ",
        {"of": "weights", "parts": ["softmax (", inner, ")"]},
        {"of": "v", "parts": ["V"]},
    ]


def spoken_equation(found: HeadStages) -> str:
    """The equation as it is read aloud."""
    return f"head = softmax({_product(found)} + M) V"


def _root(found: HeadStages) -> str:
    """√d where that is the scale."""
    width = found.q.shape[1]
    return f"√{width}" if math.isclose(found.scale, width**-0.5) else ""


def _product(found: HeadStages) -> str:
    """The scaled scores as they are said in a line."""
    product = f"Q Kᵀ {_sign(found)}"
    if found.cap is None:
        return product
    return f"{three(found.cap)} · tanh({product} ÷ {three(found.cap)})"


def _sign(found: HeadStages) -> str:
    root = _root(found)
    return f"÷ {root}" if root else f"× {three(found.scale)}"


def _about(found: HeadStages, rows: int, columns: int) -> str:
    text = (
        "Point at a symbol to see its tensor, or at a tensor to see its symbol; click to keep it."
    )
    if len(found.rows) < rows or len(found.columns) < columns:
        text = (
            f"{len(found.rows)} of {rows:,} queries and {len(found.columns)} of {columns:,} keys "
            f"are shown; the softmax and the output are over all keys. {text}"
        )
    return text


def _window(key: str, count: int, inside: int) -> range:
    """The part of a long text that is shown: around the pinned token, until another is chosen."""
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
    scores = forward.scores(part, layer, head)  # times the scale, and bent where there is a cap
    bias = forward.bias(part, layer, head)  # of the positions
    added = scores if bias is None else scores + bias
    masked = added.masked_fill(~forward.mask(part, layer), -torch.inf)
    weights = forward.weights(part, layer, head)  # the softmax of a row
    out = weights @ v
    print(dots, scores, masked, weights, out)
