"""A circuit for print, as a chart: what its canvas draws while nothing is pointed at.

Widths and opacities are those of paint.js; the columns are as wide as what stands in them.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from explorer.analysis.wiring import CircuitNode
from explorer.charts.network import LETTER, SLANT, Mark, Place, Stroke, Word, network, slant
from explorer.charts.theme import LIGHT
from explorer.charts.vega_lite import Spec
from explorer.text.token_labels import texts

if TYPE_CHECKING:
    from explorer.components.circuit_map import CircuitMap

FOR, AGAINST, ATTENDS = "raises the metric", "lowers it", "attention, from key to query"
COLOURS = {FOR: LIGHT.positive[7], AGAINST: LIGHT.negative[7], ATTENDS: LIGHT.muted}
HIGH, DOT, APART, LINE, FOLDED, ABOVE, QUIET, USUAL = 18, 6, 10, 44, 12, 34, 22, 56
"""Pixels: the height of a part, the side of a dot, what is beside a part; a line of parts, and a
layer without any; the output's room; a column without parts, and the least of one with parts."""


@dataclass(frozen=True)
class DrawnPart:
    """A part at a position; a `port` is where a head reads k or v."""

    node: CircuitNode
    at: int
    port: bool = False


def printed_circuit(circuit: "CircuitMap", drawn: Sequence[Sequence[tuple[int, float]]]) -> Spec:
    """The strongest edges, each at the positions and with the scores in `drawn`."""
    reads, edges = defaultdict[DrawnPart, set[str]](set), list[tuple[DrawnPart, DrawnPart, float]]()
    for edge, scores in zip(circuit.edges, drawn, strict=False):
        for at, score in scores:
            target = DrawnPart(edge.target, at, edge.reads in ("k", "v"))
            if edge.target.kind == "logits":
                target = DrawnPart(edge.target, circuit.place or 0)
            reads[target].add(edge.reads)
            edges.append((DrawnPart(edge.source, at), target, score))
    parts = {part for source, target, _ in edges for part in (source, target)}
    moves = [*_moves(circuit, parts)]
    parts |= {part for key, query, _ in moves for part in (key, query)}
    names = {part: _name(part, reads[part], circuit.output) for part in parts}
    places, size, words = _places(circuit, names)
    strokes = []
    largest = max((move for _, _, move in moves), default=1.0)
    for key, query, move in moves:
        (x0, y0), (x1, y1), share = places[key], places[query], move / largest
        curve = [(x0, y0), (x0, y0 + HIGH), (x1, y0 + HIGH), (x1, y1)]
        strokes.append(Stroke(curve, ATTENDS, 1 + 2.2 * share, 0.28 + 0.3 * share))
    largest = max((abs(score) for _, _, score in edges), default=1.0)
    for source, target, score in sorted(edges, key=lambda edge: abs(edge[2])):
        (x0, y0), (x1, y1), share = places[source], places[target], (abs(score) / largest) ** 0.5
        curve = [(x0, y0), (x0, (y0 + y1) / 2), (x1, (y0 + y1) / 2), (x1, y1)]
        kind = FOR if score > 0 else AGAINST
        strokes.append(Stroke(curve, kind, 1 + 7 * share, 0.4 + 0.55 * share))
    boxes = []
    for part, name in names.items():
        is_round, box = part.node.kind == "head", (_wide(name), HIGH)
        if name:
            boxes.append(Mark(places[part], box, LIGHT.background, 1.0, True, is_round))
            words.append(Word(places[part], name))
        else:
            boxes.append(Mark(places[part], (DOT, DOT), LIGHT.muted))
    return network(size, strokes, boxes, words, COLOURS, [AGAINST])


def _moves(
    circuit: "CircuitMap", parts: set[DrawnPart]
) -> Iterator[tuple[DrawnPart, DrawnPart, float]]:
    """Attention to where a head writes, from each drawn key and from the one that brings most."""
    for node in sorted({part.node for part in parts if part.node.kind == "head"}):
        known = [
            move for move in circuit.moves if (move.layer, move.head) == (node.layer, node.head)
        ]
        known.sort(key=lambda move: -move.size)
        queries = {part.at for part in parts if part == DrawnPart(node, part.at)}
        for query in sorted(queries or {move.query for move in known[:1]}):
            here = [move for move in known if move.query == query]
            for rank, move in enumerate(here):
                key = DrawnPart(node, move.key, True)
                if rank == 0 or key in parts:
                    yield key, DrawnPart(node, query), move.size


def _name(part: DrawnPart, reads: set[str], output: str) -> str:
    """Its words; the embedding has none, nor a key at which no drawn edge is read."""
    kind = part.node.kind
    if kind == "logits":
        return output
    if part.port or kind == "embedding":
        return "".join(sorted(reads))
    return f"q→{part.node.title}" if "q" in reads else part.node.title


def _wide(name: str) -> float:
    return round(LETTER * len(name) + APART, 1)


def _places(
    circuit: "CircuitMap", names: Mapping[DrawnPart, str]
) -> tuple[dict[DrawnPart, Place], Place, list[Word]]:
    """Where each part stands, the size of the picture, and the words around it."""
    labels, cells = texts(circuit.tokens), defaultdict[tuple[int, int, int], list[DrawnPart]](list)
    for part in sorted(names, key=lambda part: (part.at, part.node, part.port)):
        if part.node.kind in ("head", "feed-forward"):
            cells[part.node.layer, int(part.node.kind != "head"), part.at].append(part)
    widths = [QUIET] * len(labels)
    for part in names:
        widths[part.at] = max(widths[part.at], USUAL)
    for (_, _, at), cell in cells.items():
        widths[at] = max(widths[at], round(sum(_wide(names[part]) + APART for part in cell)))
    lefts = [sum(widths[:at]) for at in range(len(widths))]
    rows, y, marks = dict[tuple[int, int], float](), 0.0, list[tuple[float, str]]()
    for layer in range(circuit.layers):
        used = sorted({line for row, line, _ in cells if row == layer})
        for line in used:
            rows[layer, line] = y = y + LINE
        y += 0 if used else FOLDED
        if used:
            marks.append((rows[layer, used[0]], str(layer)))
    height = ABOVE + y + LINE
    places = dict[DrawnPart, Place]()
    for (layer, line, at), cell in cells.items():
        x = lefts[at] + widths[at] / 2 - sum(_wide(names[part]) + APART for part in cell) / 2
        for part in cell:
            wide = _wide(names[part]) + APART
            places[part], x = (round(x + wide / 2, 1), height - rows[layer, line]), x + wide
    for part in names:
        if part.node.kind == "embedding":
            places[part] = lefts[part.at] + widths[part.at] / 2, height
        elif part.node.kind == "logits":
            middle = lefts[part.at] + widths[part.at] / 2
            places[part] = sum(widths) / 2 if circuit.place is None else middle, ABOVE / 2
    angle = slant(labels, min(widths))
    words = [
        Word((left + wide / 2, height + 14), label, angle)
        for left, wide, label in zip(lefts, widths, labels, strict=True)
    ]
    below = height + 14 + max(16, LETTER * angle / SLANT * max(map(len, labels)))
    words += [
        Word((left + wide / 2, below), f"⇄ {other}", muted=True)
        for left, wide, label, other in zip(
            lefts, widths, labels, texts(circuit.corrupted), strict=True
        )
        if label != other
    ]
    layers = [Word((-10, height - row), name, muted=True) for row, name in marks]
    return places, (sum(widths), height), words + layers
