"""How much of a difference a circuit restores as it grows, beside random circuits of its size.

Faithfulness: the metric of the circuit alone, 0 for the corrupted text and 1 for the clean one.
Completeness: the same of all edges but the circuit's, as Marks et al. 2024 define it. Both may
leave the range from 0 to 1, since some edges work against the answer.
Shapes: r readers, w writers (`explorer.analysis.wiring`), p pairs.
Sources: Have Faith in Faithfulness (Hanna et al. 2024), section 2; Sparse Feature Circuits (Marks
et al. 2024), section 3.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.analysis.circuit_pass import CorruptedPass

RANDOM_CIRCUITS = 3
"""Random circuits of every size."""
ENOUGH = 0.9
SEARCHED = 6
"""Circuits tried between two sizes, to find the smallest that is enough."""


@dataclass(frozen=True)
class CircuitPoint:
    """The share of the metric that the circuit of so many edges restores, and what is left.

    `random` is the mean over circuits of as many edges drawn at random, `low` and `high` are
    the least and the most of them.
    """

    edges: int
    circuit: float
    complement: float
    random: float
    low: float
    high: float


def sizes(edges: int) -> list[int]:
    """1, 2, 5, 10, 20, 50, … up to all edges."""
    steps = [digit * 10**power for power in range(9) for digit in (1, 2, 5)]
    return [*(size for size in steps if size < edges), edges]


def strongest_edges(scores: Tensor, is_edge: Tensor) -> Tensor:
    """The places of all edges in the flattened matrix (r, w), the largest |score| first."""
    places = is_edge.flatten().nonzero()[:, 0]
    order: Tensor = scores.flatten()[places].abs().argsort(descending=True, stable=True)
    return places[order]


def circuit_curve(
    passes: Sequence[CorruptedPass], clean: float, order: Tensor, seed: int = 0
) -> Iterator[CircuitPoint]:
    """One point for each size. Costs (2 + draws) × p passes that are about twice a plain one.

    `clean` is the mean of the metric over the clean texts; shares are those of the mean over the
    pairs. `order` has the places of all edges, the strongest first.
    """
    draws = random_orders(order, seed)
    for size in sizes(len(order)):
        yield circuit_point(passes, clean, order, draws, size)


def random_orders(order: Tensor, seed: int = 0) -> list[Tensor]:
    """All edges in other orders, the same again from the same seed."""
    generator = torch.Generator().manual_seed(seed)
    return [order[torch.randperm(len(order), generator=generator)] for _ in range(RANDOM_CIRCUITS)]


def circuit_point(
    passes: Sequence[CorruptedPass],
    clean: float,
    order: Tensor,
    draws: Sequence[Tensor],
    size: int,
) -> CircuitPoint:
    """The circuit of the first so many edges, all but these, and as many of each of `draws`."""
    is_edge = passes[0].wiring.is_edge
    circuit = _mask(is_edge, order[:size])
    random = [_mask(is_edge, each[:size]) for each in draws]
    found = restored(passes, clean, torch.stack([circuit, ~circuit, *random])).tolist()
    drawn = found[2:]
    mean = sum(drawn) / len(drawn)
    return CircuitPoint(size, found[0], found[1], mean, min(drawn), max(drawn))


def restored(passes: Sequence[CorruptedPass], clean: float, kept: Tensor) -> Tensor:
    """The share of the difference that these circuits (b, r, w) restore, (b,)."""
    found = [(each.metric, each.metrics(kept).double()) for each in passes]
    corrupted = sum(metric for metric, _ in found) / len(found)
    mean = torch.stack([metrics for _, metrics in found]).mean(0)
    return (mean - corrupted) / (clean - corrupted)


def smallest_circuit(
    passes: Sequence[CorruptedPass],
    clean: float,
    order: Tensor,
    points: Sequence[CircuitPoint],
    enough: float = ENOUGH,
) -> int | None:
    """About how few of the strongest edges restore `enough`; None where no size that was tried did.

    Searched by halving between two sizes of `points`, so that it is within 2.4 % of one that does.
    """
    at = next((at for at, point in enumerate(points) if point.circuit >= enough), None)
    if at is None:
        return None
    is_edge = passes[0].wiring.is_edge
    few, many = points[at - 1].edges if at else 0, points[at].edges
    for _ in range(SEARCHED):
        if many - few <= 1:
            break
        middle = (few + many) // 2
        is_enough = float(restored(passes, clean, _mask(is_edge, order[:middle])[None])) >= enough
        few, many = (few, middle) if is_enough else (middle, many)
    return many


def _mask(is_edge: Tensor, places: Tensor) -> Tensor:
    """These places of the matrix of edges, (r, w)."""
    mask = torch.zeros(is_edge.numel(), dtype=torch.bool)
    mask[places] = True
    return mask.view_as(is_edge)
