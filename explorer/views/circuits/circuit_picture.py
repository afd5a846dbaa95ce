"""The circuit on the picture of the pass, and the head or edge that the reader selects in it."""

import re
from collections.abc import Iterator, Sequence

from torch import Tensor

from explorer.analysis.adjusted_weights import weigh_by_value_norm
from explorer.analysis.attribution_patching import positions_of_edges
from explorer.analysis.circuit_metrics import ANSWERS_READ, LOGIT_DIFFERENCE
from explorer.analysis.circuits.circuit_scores import METHODS, EdgeScores, contrast_of, node_of
from explorer.analysis.circuits.direct_head_effect import clean_pass
from explorer.analysis.circuits.text_pairs import Question
from explorer.analysis.output_change import has_words
from explorer.analysis.residual_writes import value_writes
from explorer.analysis.wiring import CircuitNode, Edge
from explorer.app.address import whole_number
from explorer.app.choosing import choose_head
from explorer.app.messages import say
from explorer.app.persistent_choices import PersistentChoices
from explorer.catalog.opened_model import OpenModel
from explorer.components.circuit_map import (
    MOST_CIRCUIT_EDGES,
    CircuitChoice,
    CircuitMap,
    Move,
    circuit_map,
    counts,
    drawn_places,
    selection_in,
)
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import cached
from explorer.text.visible_text import cut

USUAL, LEAST = 40, 0.02
"""Edges that are drawn by default: their most, and the least estimate relative to the strongest."""
IN_ADDRESS = PersistentChoices("circuit_picture", {"drawn_edges": "", "drawn_part": ""})
PART = re.compile(r"([0-9]{1,5})\.([0-9]{1,5})|e([0-9]{1,5})")


def draw_circuit_map(title: str, picture: CircuitMap) -> CircuitNode | Edge | None:
    """Draw the strongest edges.

    Returns the head or edge that is selected in the picture; a selected head is also selected in
    the bar.
    """
    selection = current_selection(picture)
    circuit_map(
        picture, key="circuit_map", title=title, selection=selection, on_select=keep_selection
    )
    if selection.head is not None:
        return CircuitNode("head", *selection.head)
    return None if selection.edge is None else picture.edges[selection.edge]


def picture_of(
    opened: OpenModel,
    question: Question,
    scores: EdgeScores,
    method: str,
    exact: Sequence[float],
    exact_parts: Sequence[float | None],
) -> CircuitMap:
    """The picture. The positions of the edges and the moves of their heads are cached.

    They are those of the first pair, whose clean text is drawn; scores are means over all pairs.
    `exact` are the exact values of the first edges, `exact_parts` those of the writers, by their
    columns.
    """
    pair = question.pairs[0]
    places = scores.strongest(MOST_CIRCUIT_EDGES)
    edges = scores.strongest_edges(MOST_CIRCUIT_EDGES, exact)

    def make() -> tuple[Tensor, tuple[Move, ...]]:
        positions = positions_of_edges(contrast_of(opened, pair), places, METHODS[method])
        part = f"{scores.wiring.stack}.self_attn"
        return positions, tuple(moves(clean_pass(opened, pair), part, edges, positions))

    positions, moved = cached(opened, ("circuit picture", question.key, method), make)
    output = question.metric
    if len(question.pairs) == 1 and ANSWERS_READ[output]:
        output = f"{output} of {pair.names[0]}"
        if question.metric == LOGIT_DIFFERENCE:
            output = "logit of {} − logit of {}".format(*pair.names)
    shares = zip(scores.writers.tolist(), exact_parts, strict=True)
    return CircuitMap(
        tokens=pair.clean,
        corrupted=pair.counterparts,
        layers=scores.wiring.layers,
        edges=edges,
        positions=positions,
        nodes=dict(zip(map(node_of, scores.wiring.columns), shares, strict=True)),
        moves=moved,
        place=pair.place if has_words(opened.config) else None,
        output=output,
        difference=scores.difference,
        every=len(scores.order),
    )


def moves(
    forward: ForwardPass, part: str, edges: Sequence[Edge], positions: Tensor
) -> Iterator[Move]:
    """What the heads of these edges bring to the positions where they write or read q.

    It comes from each position where k or v is read, and from the key that brings most. Cost grows
    with heads × t².
    """
    reads: dict[CircuitNode, set[int]] = {}
    writes: dict[CircuitNode, set[int]] = {}
    for edge, scores in zip(edges, positions, strict=True):
        at = drawn_places(scores)
        if edge.source.kind == "head":
            writes.setdefault(edge.source, set()).update(at)
        if edge.target.kind == "head":
            to = writes if edge.reads == "q" else reads
            to.setdefault(edge.target, set()).update(at)
    for head in sorted({*reads, *writes}):
        weights = forward.weights(part, head.layer, head.head)
        brought = weigh_by_value_norm(weights, value_writes(forward, part, head.layer, head.head))
        keys = sorted(reads.get(head, ()))
        queries = writes.get(head) or {int(brought[:, keys].sum(1).argmax())}
        for query in sorted(queries):
            for key in sorted({*keys, int(brought[query].argmax())}):
                size = float(brought[query, key])
                if size > 0:
                    yield Move(head.layer, head.head, query, key, size)


def cell_of_edge(picture: CircuitMap, edge: Edge, head: CircuitNode) -> tuple[int, ...]:
    """The query and key of the head's largest move, one of them where this edge is strongest."""
    at = int(picture.positions[picture.edges.index(edge)].abs().nan_to_num(0).argmax())
    side = "key" if head == edge.target and edge.reads in ("k", "v") else "query"
    where = head.layer, head.head, at
    moves = (of for of in picture.moves if (of.layer, of.head, getattr(of, side)) == where)
    best = max(moves, key=lambda move: move.size, default=None)
    return () if best is None else (best.query, best.key)


def keep_selection(selection: CircuitChoice) -> None:
    """For the callback: put the selection into the address and its head into the bar."""
    IN_ADDRESS.put("drawn_edges", str(selection.count))
    IN_ADDRESS.put("drawn_part", _address_text(selection))
    if selection.head is not None:
        choose_head(*selection.head)


def current_selection(picture: CircuitMap) -> CircuitChoice:
    """The selection in the address or from a click; a note names what does not exist."""
    is_new = IN_ADDRESS.is_new
    address = {name: str(text) for name, text in IN_ADDRESS.texts().items()}
    usual = usual_count(picture)
    count = whole_number(address.get("drawn_edges", ""))
    part = PART.fullmatch(address.get("drawn_part", ""))
    chosen = [int(text or -1) for text in part.groups()] if part else [-1] * 3
    some = (selection_in([most, *chosen], picture) for most in (count, usual))
    selection = next(filter(None, some), CircuitChoice(usual))
    valid = {"drawn_edges": str(selection.count), "drawn_part": _address_text(selection)}
    for name, text in address.items():
        if is_new and text and text != valid[name]:
            say(f"“{name}” cannot be “{cut(text, 20)}” for this circuit; it is left out.")
    if selection.count == usual:
        valid["drawn_edges"] = ""
    IN_ADDRESS.settle(valid)
    return selection


def usual_count(picture: CircuitMap) -> int:
    """How many edges are drawn by default: a step of the slider."""
    sizes = [abs(edge.estimate) for edge in picture.edges]
    strong = sum(size >= LEAST * sizes[0] for size in sizes)
    first, *more = counts(picture)
    return max([first, *(count for count in more if count <= min(USUAL, strong))])


def _address_text(selection: CircuitChoice) -> str:
    """The selection in the address: 23.3 for a head, e7 for an edge."""
    if selection.edge is not None:
        return f"e{selection.edge}"
    return "" if selection.head is None else "{}.{}".format(*selection.head)
