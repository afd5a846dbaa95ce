"""The chosen head step by step: which stages are shown, which part of a long text, which cell."""

from __future__ import annotations

import math
from collections.abc import Sequence

import streamlit as st

from explorer.analysis.head_stages import Stages, stages
from explorer.analysis.query_key import strongest
from explorer.app import session
from explorer.app.controls import number, one_of
from explorer.components.events import Place
from explorer.components.stages import Node, Panel
from explorer.components.stages import stages as view
from explorer.components.token_labels import Label, text_of
from explorer.inference.forward_pass import ForwardPass
from explorer.text.number_format import three
from explorer.views.shared import pinned, pinned_pair, widgets
from explorer.views.shared.pinned import Held

UP_TO = ("scores", "scaled", "masked", "softmax", "values")
FIRST_SHOWN = {"dots": 0, "scaled": 1, "added": 2, "logits": 2, "weights": 3, "v": 4, "out": 4}
"""The step of `UP_TO` from which on a tensor is there; queries and keys are from the start."""
MOST = 32
"""So many queries and keys are large enough to be read beside each other."""


def show(forward: ForwardPass) -> None:
    """The whole screen for the head that is chosen in the sidebar."""
    at = session.choice()
    rows, columns = forward.rows(at.part), forward.columns(at.part)
    holds = pinned.now(forward)
    query = len(rows) - 1 if holds.query is None else holds.query
    key = holds.key
    if key is None:
        key = strongest(forward, at.part, at.layer, at.head, query)
    step = UP_TO.index(one_of("Shown up to", "up_to", UP_TO, UP_TO[-1]))
    down = _window("Queries", "queries", len(rows), query)
    across = _window("Keys", "keys", len(columns), key)
    found = stages(forward, at.part, at.layer, at.head, down, across)
    words = forward.part(at.part).words
    view(
        panels(found, step),
        rows[down.start : down.stop],
        columns[across.start : across.stop],
        equation(found),
        key="stages",
        spoken=in_words(found),
        about=_about(found, rows, columns),
        sentence=words.cell,
        forbidden="{row} may not look at {column}: the mask makes the score −∞, the weight 0",
        held=_inside(query, key, down, across),
        on_hold=lambda place: pinned.hold(_held(place, down, across)),
    )
    st.caption(
        "Made again in double precision from these queries and keys, no weight differs from the "
        f"pass by more than {three(found.difference)} of the largest in its row."
    )
    widgets.notes(pinned.both_names(forward, at.part, query))
    _ways(text_of(rows[query]), text_of(columns[key]), Held(query, key))


def panels(found: Stages, step: int) -> list[Panel]:
    """The tensors in the order they are made; those behind the step are not shown yet."""
    d = found.q.shape[1]
    scaled = f"the scores, {_divided(found)}."
    if found.cap is not None:
        scaled = f"the scores, {_divided(found)}, then bent to stay within ± {three(found.cap)}."
    m = "0 where a query may look at a key, −∞ where it may not."
    if found.has_bias:
        m = "the number that the positions add where a query may look at a key, else −∞."
    every = "all keys" if len(found.v) == len(found.columns) else "every key of the text"
    made = [
        Panel("dots", "Q Kᵀ", "Q Kᵀ: the product of every query with every key.", found.dots),
        Panel("scaled", _symbol(found), f"{_product(found)}: {scaled}", found.scaled),
        Panel("logits", "+ M", "The scores + M: what the softmax is given.", found.logits),
        Panel(
            "weights",
            "softmax",
            "The weights: e to each number of a row, by the sum of the row over all keys.",
            found.weights,
            scale="sequential",
            top=1.0,
        ),
        Panel("q", "Q", f"Q: a query of {d} numbers for each row.", found.q, "query", "qk", 1),
        Panel("k", "K", f"K: a key of {d} numbers for each column.", found.k, "key", "qk", 1),
        Panel("added", "M", f"M: {m}", found.added, line=1),
        Panel("v", "V", "V: the value of each key.", found.v, "key", "vo", 1),
        Panel(
            "out",
            "head",
            f"What the head gives each query: the values of {every}, each times its weight.",
            found.out,
            "query",
            "vo",
            1,
        ),
    ]
    return [_placed(panel, step) for panel in made]


def _placed(panel: Panel, step: int) -> Panel:
    labels = panel.of in ("dots", "q", "k", "v", "out")
    hidden = FIRST_SHOWN.get(panel.of, 0) > step
    fields = {**vars(panel), "labels": labels, "hidden": hidden}
    return Panel(**fields)


def equation(found: Stages) -> list[Node]:
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


def in_words(found: Stages) -> str:
    """The equation as it is read aloud."""
    return f"head = softmax({_product(found)} + M) V"


def _root(found: Stages) -> str:
    """√d where that is the scale."""
    width = found.q.shape[1]
    return f"√{width}" if math.isclose(found.scale, width**-0.5) else ""


def _product(found: Stages) -> str:
    """The scaled scores as they are said in a line."""
    product = f"Q Kᵀ {_sign(found)}"
    if found.cap is None:
        return product
    return f"{three(found.cap)} · tanh({product} ÷ {three(found.cap)})"


def _symbol(found: Stages) -> str:
    return _sign(found) if found.cap is None else f"{_sign(found)}, tanh"


def _sign(found: Stages) -> str:
    root = _root(found)
    return f"÷ {root}" if root else f"× {three(found.scale)}"


def _divided(found: Stages) -> str:
    if root := _root(found):
        return f"÷ {root} = {three(1 / found.scale)}, the root of the head's width"
    return f"× {three(found.scale)}, the model's own scale"


def _about(found: Stages, rows: Sequence[Label], columns: Sequence[Label]) -> str:
    text = "Point at a symbol to see its tensor, or at a tensor to see its symbol; click to stay."
    if len(found.rows) < len(rows) or len(found.columns) < len(columns):
        text = (
            f"Shown are {len(found.rows)} of {len(rows):,} queries and {len(found.columns)} of "
            f"{len(columns):,} keys; every softmax and every head runs over all keys. {text}"
        )
    return text


def _window(label: str, key: str, count: int, inside: int) -> range:
    """The part of a long text that is shown: the held token's, until another is chosen."""
    if count <= MOST:
        return range(count)
    start = max(0, min(inside - MOST // 2, count - MOST))
    first = number(f"{label} shown: {MOST} from number", key, count - MOST, start)
    return range(first, first + MOST)


def _inside(query: int, key: int, down: range, across: range) -> Place | None:
    if query not in down or key not in across:
        return None
    return query - down.start, key - across.start


def _held(place: Place | None, down: range, across: range) -> Held:
    return Held() if place is None else Held(down[place[0]], across[place[1]])


def _ways(query: str, key: str, holds: Held) -> None:
    """To where the held weight goes on, number by number."""
    page = st.session_state.get("_pages", {}).get("query_key")
    if page is None:
        return
    pinned_pair.way_here(holds)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.page_link(
            page,
            label="This cell's ledger, on to the stream",
            icon=":material/arrow_forward:",
        )
        st.text(f"“{query}” ({holds.query}) → “{key}” ({holds.key})")
