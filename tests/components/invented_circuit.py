"""A circuit for the picture of circuits: invented, the same in every process."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from explorer.analysis.wiring import CircuitNode, Edge
from explorer.components.circuit_map import CircuitMap, Move
from explorer.text.token_labels import Label

EMBEDDING, LOGITS = CircuitNode("embedding"), CircuitNode("logits")
MOVER, WRITER, LATE = (CircuitNode("head", *at) for at in ((1, 2), (0, 1), (5, 0)))
FIRST, LAST = CircuitNode("feed-forward", 0), CircuitNode("feed-forward", 5)
WORDS = ["Mary", "and", "John", "then", "John", "to"]
EDGES = (
    Edge(MOVER, LOGITS, "", 4.0, 0.5, 3.5),
    Edge(FIRST, MOVER, "v", 3.0),
    Edge(MOVER, LATE, "q", -2.0),
    Edge(EMBEDDING, FIRST, "", 1.5),
    Edge(LATE, LOGITS, "", -1.0),
    Edge(WRITER, MOVER, "k", 0.8),
    Edge(MOVER, LAST, "", -0.5, None, -0.25),
    Edge(LAST, LOGITS, "", 0.4),
)
PLACES = (5, 4, 5, 4, 5, 4, 5, 5)
"""Where each of the edges runs, nearly all of it."""
MOVES = (Move(1, 2, 5, 4, 2.0), Move(1, 2, 5, 0, 3.0), Move(0, 1, 4, 2, 1.0), Move(5, 0, 5, 0, 1.5))


def invented(words: Sequence[Label] = WORDS, layers: int = 6) -> CircuitMap:
    """Two heads and what is around them; of more than six words the last six have it all."""
    first = len(words) - len(WORDS)
    positions = torch.zeros(len(EDGES), len(words))
    for row, (edge, place) in enumerate(zip(EDGES, PLACES, strict=True)):
        positions[row, first + place] = 0.9 * edge.estimate
        positions[row, first + place - 1] = 0.1 * edge.estimate
    other = [*words]
    other[first + 4] = "Mary"
    moves = [replace(each, query=first + each.query, key=first + each.key) for each in MOVES]
    return CircuitMap(
        tokens=words,
        corrupted=other,
        layers=layers,
        edges=EDGES,
        positions=positions,
        nodes={MOVER: (3.5, 3.25), LATE: (-1.0, None), FIRST: (1.5, 1.25)},
        moves=moves,
        place=len(words) - 1,
        output="Mary − John",
        difference=10.0,
        every=1234,
    )
