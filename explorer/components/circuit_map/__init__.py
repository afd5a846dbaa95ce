"""The circuit on the picture of the pass: tokens are columns, layers rows, edges are lines.

An edge runs in the residual stream of one position, from what a part wrote there to what a later
one reads there. Inside a head, what k and v read at one position goes to the position of the
query, which is a line between two columns. How many edges are drawn, and what is said of a part or
an edge, is decided in the browser.
Source: the columns and rows are those of `pass_map`; Towards Automated Circuit Discovery (Conmy
et al. 2023), section 3, for the edges.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from explorer.analysis.wiring import CircuitNode, Edge
from explorer.charts.figure_data import TableData, Value
from explorer.components import events, wire
from explorer.components.mounting import View
from explorer.text.token_labels import Label, specials, texts

CIRCUIT_HTML = """
<div class="view circuit-map">
  <div class="controls">
    <label class="count">Strongest edges
      <input type="range" min="0" step="1"><output></output></label>
    <span class="sentence idle"></span><span class="notes"></span>
  </div>
  <div class="both">
    <div class="stage"><canvas tabindex="0" role="application"></canvas></div>
    <div class="aside"><div class="card"></div>
      <div class="hint"><p>Point at a part or a line. Click a head or a line to open its card.</p>
      <p>q, k and v: what a head reads an edge as. A dot is the key that it attends to most.</p>
      <p>Up and down go through the parts, left and right through the edges.</p></div></div>
  </div>
  <div class="foot">
    <span class="key for">raises the metric</span>
    <span class="key against">lowers it (dashed)</span>
    <span class="key attends">attention, from key to query</span>
    <span class="key head-part">head</span>
    <span class="key mlp-part">feed-forward</span>
    <span>⇄ token of the corrupted text</span>
  </div>
  <div class="spoken" role="status" aria-live="polite"></div>
</div>
"""

MOST_CIRCUIT_EDGES = 300
EDGE_COUNTS = (5, 10, 15, 20, 30, 40, 50, 75, 100, 150, 200)
"""How many edges may be drawn, besides all of them."""
MOST_EDGE_PLACES, LEAST_OF_LARGEST = 4, 0.2
"""Of an edge: positions that are drawn, and the least of its largest score that one has."""
LAYER_HEIGHT, AROUND_LAYERS, FEW_LAYERS = 96, 190, 4
"""Pixels of a layer where there are few, and of what stands around them. A picture of more layers
is as high as the window lets it be (view.css)."""

_VIEW = View("circuit_map", CIRCUIT_HTML)


@dataclass(frozen=True)
class NodeScore:
    """The part of the metric that a part of the model carries: by attribution, and by patching."""

    estimate: float
    exact: float | None = None


@dataclass(frozen=True)
class Move:
    """What a head brings from `key` to `query`: its weight times the norm of the written value."""

    layer: int
    head: int
    query: int
    key: int
    size: float


@dataclass(frozen=True, eq=False)
class CircuitMap:
    """All that is drawn of a circuit.

    `edges` are the strongest of `every` one, the strongest first, and `positions` (n, t) the part
    of each that is due to each position of the clean text. `corrupted` are the tokens that stand in
    the other text. The metric differs by `difference` between the two. It is read at `place`, None
    for a class of the whole text, and `output` names it in visible characters.
    """

    tokens: Sequence[Label]
    corrupted: Sequence[Label]
    layers: int
    edges: Sequence[Edge]
    positions: Tensor
    nodes: Mapping[CircuitNode, NodeScore]
    moves: Sequence[Move]
    place: int | None
    output: str
    difference: float
    every: int


@dataclass(frozen=True)
class CircuitChoice:
    """What is chosen in the picture: how many edges, and a head or an edge."""

    count: int
    head: tuple[int, int] | None = None
    edge: int | None = None

    @property
    def sent(self) -> list[int]:
        """As the browser has it."""
        return [self.count, *(self.head or (-1, -1)), -1 if self.edge is None else self.edge]


def circuit_map(
    shown: CircuitMap,
    *,
    key: str,
    title: str,
    selection: CircuitChoice,
    on_select: Callable[[CircuitChoice], None],
) -> None:
    """Draw it. `on_select` is told what was chosen, once the hand rests."""

    def tell() -> None:
        chosen = selection_in(events.chosen(key), shown)
        if chosen is not None:
            on_select(chosen)

    _VIEW(
        key=key,
        data=encode(shown, key, title),
        height=AROUND_LAYERS + shown.layers * LAYER_HEIGHT
        if shown.layers <= FEW_LAYERS
        else "content",
        choice=selection.sent,
        figures=lambda: [figure(shown, title)],
        title=title,
        on_chosen_change=tell,
    )


def counts(shown: CircuitMap) -> list[int]:
    """How many edges may be drawn."""
    most = len(shown.edges)
    return [*(step for step in EDGE_COUNTS if step < most), most]


def selection_in(value: Any, shown: CircuitMap) -> CircuitChoice | None:
    """What a browser says is chosen, which may be anything; None where it cannot be."""
    if not isinstance(value, list) or len(value) != 4 or any(type(one) is not int for one in value):
        return None
    count, layer, head, edge = value
    if count not in counts(shown):
        return None
    is_head = CircuitNode("head", layer, head) in _parts(shown.edges)
    is_edge = 0 <= edge < len(shown.edges)
    return CircuitChoice(count, (layer, head) if is_head else None, edge if is_edge else None)


def drawn_places(scores: Tensor) -> list[int]:
    """The few positions (of t) at which an edge with these scores is drawn, the largest first."""
    sizes = scores.abs().nan_to_num(0)
    order = sizes.argsort(descending=True, stable=True)[:MOST_EDGE_PLACES].tolist()
    least = LEAST_OF_LARGEST * float(sizes.max())
    return [at for at in order if sizes[at] > 0 and sizes[at] >= least]


def encode(shown: CircuitMap, key: str, title: str) -> bytes:
    """The message: a header without planes, some 100 bytes an edge before it is deflated."""
    parts = _parts(shown.edges)
    places = {node: at for at, node in enumerate(parts)}
    other = texts(shown.corrupted)
    header = {
        "name": key,
        "title": title,
        "tells": True,
        "tokens": texts(shown.tokens),
        "muted": specials(shown.tokens),
        "other": [
            [at, other[at]]
            for at, (one, two) in enumerate(zip(texts(shown.tokens), other, strict=True))
            if one != two
        ],
        "layers": shown.layers,
        "counts": counts(shown),
        "parts": [
            [node.kind, node.layer, node.head, node.title, *_scores(shown.nodes.get(node))]
            for node in parts
        ],
        "edges": [
            {
                "from": places[edge.source],
                "to": places[edge.target],
                "reads": edge.reads,
                "title": edge.title,
                "scores": [_known(edge.estimate), _known(edge.exact), _known(edge.spread)],
                "at": [[at, float(scores[at])] for at in drawn_places(scores)],
                "elsewhere": _elsewhere(scores),
            }
            for edge, scores in zip(shown.edges, shown.positions, strict=True)
        ],
        "moves": [
            [places[node], move.query, move.key, _known(move.size)]
            for move in shown.moves
            if (node := CircuitNode("head", move.layer, move.head)) in places
        ],
        "place": shown.place,
        "output": shown.output,
        "difference": _known(shown.difference),
        "every": shown.every,
    }
    return wire.pack(header)


def figure(shown: CircuitMap, title: str) -> TableData:
    """The edges as a table, with the position that each owes most to."""
    labels = texts(shown.tokens)
    strongest = [next(iter(drawn_places(scores)), None) for scores in shown.positions]
    columns: dict[str, Sequence[Value]] = {
        "source": [edge.source.title for edge in shown.edges],
        "target": [edge.target.title for edge in shown.edges],
        "reads": [edge.reads for edge in shown.edges],
        "estimate": [edge.estimate for edge in shown.edges],
        "spread": [edge.spread for edge in shown.edges],
        "exact": [edge.exact for edge in shown.edges],
        "position": ["" if at is None else f"{at} {labels[at]}" for at in strongest],
    }
    return TableData(columns, title)


def _parts(edges: Sequence[Edge]) -> list[CircuitNode]:
    return sorted({node for edge in edges for node in (edge.source, edge.target)})


def _scores(score: NodeScore | None) -> list[float | None]:
    return [None, None] if score is None else [_known(score.estimate), _known(score.exact)]


def _elsewhere(scores: Tensor) -> float:
    """The share of an edge's sizes at the positions where it is not drawn."""
    sizes = scores.abs().nan_to_num(0)
    every = float(sizes.sum())
    return 1 - float(sizes[drawn_places(scores)].sum()) / every if every > 0 else 0.0


def _known(value: float | None) -> float | None:
    """None where there is no number."""
    return float(value) if value is not None and math.isfinite(value) else None
