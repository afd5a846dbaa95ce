"""The circuit on the picture of the pass: tokens are columns, layers rows, edges are lines.

An edge runs in the residual stream of one position, from what a part wrote there to what a later
one reads there. Inside a head, what k and v read at one position goes to the position of the
query, which is a line between two columns. The browser decides how many edges are drawn and writes
the sentence about a part or an edge.
Source: the columns and rows are those of `pass_map`; Towards Automated Circuit Discovery (Conmy
et al. 2023), section 3, for the edges.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from explorer.analysis.wiring import CircuitNode, Edge
from explorer.charts.figure_data import TableData, Value
from explorer.components import events, wire
from explorer.components.circuit_map.printed import printed_circuit
from explorer.components.mounting import View
from explorer.components.wire import finite
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
      <div class="hint"><p>1.0 is layer 1, head 0. Point at it or at a line; click to open its
        card.</p>
      <p>q, k, v: whether a line enters as query (what the head looks for), key
        (what it finds it by) or value (what it passes on). A dot marks the key that the
        head attends to most.</p>
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
"""Numbers of edges that can be chosen, besides all of them."""
MOST_EDGE_PLACES, LEAST_OF_LARGEST = 4, 0.2
"""Positions drawn of one edge, and the smallest share of its largest score that is drawn."""

_VIEW = View("circuit_map", CIRCUIT_HTML)


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
    for a class of the whole text, and `output` names it in visible characters. `nodes` has the
    share of the metric that a part carries: its estimate and its exact value.
    """

    tokens: Sequence[Label]
    corrupted: Sequence[Label]
    layers: int
    edges: Sequence[Edge]
    positions: Tensor
    nodes: Mapping[CircuitNode, tuple[float, float | None]]
    moves: Sequence[Move]
    place: int | None
    output: str
    difference: float
    every: int


@dataclass(frozen=True)
class CircuitChoice:
    """The choice in the picture: the number of edges, and a head or an edge."""

    count: int
    head: tuple[int, int] | None = None
    edge: int | None = None

    @property
    def message(self) -> list[int]:
        """The choice as the browser sends and receives it."""
        return [self.count, *(self.head or (-1, -1)), -1 if self.edge is None else self.edge]


def circuit_map(
    circuit: CircuitMap,
    *,
    key: str,
    title: str,
    selection: CircuitChoice,
    on_select: Callable[[CircuitChoice], None],
) -> None:
    """Draw the circuit. `on_select` gets the choice shortly after the last click or key."""

    def tell() -> None:
        chosen = selection_in(events.chosen(key), circuit)
        if chosen is not None:
            on_select(chosen)

    _VIEW(
        key=key,
        data=encode(circuit, key, title),
        choice=selection.message,
        figures=lambda: [figure(circuit, title, selection.count)],
        title=title,
        on_chosen_change=tell,
    )


def counts(circuit: CircuitMap) -> list[int]:
    most = len(circuit.edges)
    return [*(step for step in EDGE_COUNTS if step < most), most]


def selection_in(value: Any, circuit: CircuitMap) -> CircuitChoice | None:
    """The choice that a browser has sent; None if it is invalid."""
    if not isinstance(value, list) or [type(number) for number in value] != [int] * 4:
        return None
    count, layer, head, edge = value
    if count not in counts(circuit):
        return None
    is_head = CircuitNode("head", layer, head) in _parts(circuit.edges)
    is_edge = 0 <= edge < len(circuit.edges)
    return CircuitChoice(count, (layer, head) if is_head else None, edge if is_edge else None)


def drawn_places(scores: Tensor) -> list[int]:
    """The few positions (of t) at which an edge with these scores is drawn, the largest first."""
    sizes = scores.abs().nan_to_num(0)
    order = sizes.argsort(descending=True, stable=True)[:MOST_EDGE_PLACES].tolist()
    least = LEAST_OF_LARGEST * float(sizes.max())
    return [at for at in order if sizes[at] > 0 and sizes[at] >= least]


def encode(circuit: CircuitMap, key: str, title: str) -> bytes:
    """The message: a header without planes, some 100 bytes an edge before it is deflated."""
    parts = _parts(circuit.edges)
    shares = {node: circuit.nodes.get(node, (None, None)) for node in parts}
    places = {node: at for at, node in enumerate(parts)}
    tokens, corrupted = texts(circuit.tokens), texts(circuit.corrupted)
    header = {
        "name": key,
        "title": title,
        "tells": True,
        "tokens": tokens,
        "muted": specials(circuit.tokens),
        "other": [
            [at, word]
            for at, (clean, word) in enumerate(zip(tokens, corrupted, strict=True))
            if clean != word
        ],
        "layers": circuit.layers,
        "counts": counts(circuit),
        "parts": [
            [node.kind, node.layer, node.head, node.title, *map(finite, shares[node])]
            for node in parts
        ],
        "edges": [
            {
                "from": places[edge.source],
                "to": places[edge.target],
                "reads": edge.reads,
                "title": edge.title,
                "scores": [*map(finite, (edge.estimate, edge.exact, edge.spread))],
                "at": [[at, float(scores[at])] for at in drawn_places(scores)],
                "elsewhere": _elsewhere(scores),
            }
            for edge, scores in zip(circuit.edges, circuit.positions, strict=True)
        ],
        "moves": [
            [places[node], move.query, move.key, finite(move.size)]
            for move in circuit.moves
            if (node := CircuitNode("head", move.layer, move.head)) in places
        ],
        "place": circuit.place,
        "output": circuit.output,
        "difference": finite(circuit.difference),
        "every": circuit.every,
    }
    return wire.pack(header)


def figure(circuit: CircuitMap, title: str, count: int) -> TableData:
    """The edges as a table, with the position that each owes most to; a picture of the first."""
    labels = texts(circuit.tokens)
    strongest = [next(iter(drawn_places(scores)), None) for scores in circuit.positions]
    columns: dict[str, Sequence[Value]] = {
        "source": [edge.source.title for edge in circuit.edges],
        "target": [edge.target.title for edge in circuit.edges],
        "reads": [edge.reads for edge in circuit.edges],
        "estimate": [edge.estimate for edge in circuit.edges],
        "spread": [edge.spread for edge in circuit.edges],
        "exact": [edge.exact for edge in circuit.edges],
        "position": ["" if at is None else f"{at} {labels[at]}" for at in strongest],
    }
    places = [
        [(at, float(scores[at])) for at in drawn_places(scores)]
        for scores in circuit.positions[:count]
    ]
    return TableData(columns, title, spec=printed_circuit(circuit, places))


def _parts(edges: Sequence[Edge]) -> list[CircuitNode]:
    return sorted({node for edge in edges for node in (edge.source, edge.target)})


def _elsewhere(scores: Tensor) -> float:
    """The share of an edge's sizes at the positions where it is not drawn."""
    sizes = scores.abs().nan_to_num(0)
    every = float(sizes.sum())
    return 1 - float(sizes[drawn_places(scores)].sum()) / every if every > 0 else 0.0
