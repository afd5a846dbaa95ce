"""Which heads look at a text alike: how far their rows are apart as distributions.

Two heads are compared row by row by the Jensen–Shannon divergence of their weights, in
bits: 0 where both look alike, 1 where no key has weight in both. The mean over the rows
is one number of two heads (Clark et al. 2019, What Does BERT Look At?, section 6, who take
the sum). Time grows with heads² × rows × keys, so of a long text only rows at even
distances are compared, and of very many heads only some layers; what is left out is said.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.inference.forward_pass import ForwardPass

CELLS_COMPARED = 100_000_000
"""Pairs of heads × rows × keys; about a second of work."""
HEADS_COMPARED = 256
"""With more of them the picture would have less than two pixels a head."""

Head = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Looks:
    """The rows of `heads` that are compared, (n, r, k) and which of all rows they are."""

    heads: tuple[Head, ...]
    weights: Tensor
    rows: tuple[int, ...]
    of_rows: int


def layers_compared(layers: int, heads: int) -> tuple[int, ...]:
    """Which layers, the first and the last among them, so that there are not too many heads."""
    most = max(1, HEADS_COMPARED // heads)
    return _evenly(layers, most)


def looks(forward: ForwardPass, part: str, layers: Sequence[int] | None = None) -> Iterator[Looks]:
    """The rows that are compared, one layer after another; all layers unless some are named."""
    shape = forward.part(part)
    layers = range(shape.layers) if layers is None else layers
    queries, keys = len(forward.rows(part)), len(forward.columns(part))
    visible = torch.ones(queries, dtype=torch.bool)
    for layer in layers:
        visible &= forward.mask(part, layer).any(-1)
    seeing = visible.nonzero()[:, 0].tolist()  # rows that see nothing have no distribution
    n = min(len(layers) * shape.heads, HEADS_COMPARED)
    most = max(1, CELLS_COMPARED // max(1, n * n // 2 * keys))
    rows = [seeing[at] for at in _evenly(len(seeing), most)]
    for layer in layers:
        kept = torch.cat([weights[:, rows].float() for weights in forward.some_heads(part, layer)])
        names = tuple((layer, head) for head in range(shape.heads))
        yield Looks(names, kept, tuple(rows), queries)


def joined(found: Sequence[Looks]) -> Looks:
    """The heads of several layers together."""
    names = tuple(name for each in found for name in each.heads)
    return Looks(
        names, torch.cat([each.weights for each in found]), found[0].rows, found[0].of_rows
    )


def _evenly(count: int, most: int) -> tuple[int, ...]:
    """At most so many of 0 … count - 1, at even distances, the first and the last among them."""
    if count <= most:
        return tuple(range(count))
    if most == 1:
        return (count - 1,)
    return tuple(round(at * (count - 1) / (most - 1)) for at in range(most))


def apart(one: Tensor, others: Tensor) -> Tensor:
    """Mean Jensen–Shannon divergence in bits of a head (r, k) to others (n, r, k); (n,).

    NaN where there is no row, or a weight that is no number.
    """
    middle = torch.special.entr((one + others) / 2).sum(-1)
    each = (torch.special.entr(one).sum(-1) + torch.special.entr(others).sum(-1)) / 2
    return ((middle - each) / math.log(2)).mean(-1).clamp(0, 1)


def distances(weights: Tensor) -> Iterator[Tensor]:
    """Of every head (n, r, k) to itself and those behind it: one row of the table after another."""
    for at in range(len(weights)):
        yield apart(weights[at], weights[at:])


def table(rows: Sequence[Tensor]) -> Tensor:
    """The whole symmetric table (n, n) from the rows of `distances`; a head is like itself."""
    found = torch.zeros(len(rows), len(rows))
    for at, row in enumerate(rows):
        found[at, at:] = found[at:, at] = row
    own = found.diagonal()
    own[~own.isnan()] = 0.0
    return found


def by_likeness(distance: Tensor) -> list[int]:
    """An order of the heads in which those that are alike stand together.

    The two groups that are least far apart on average are joined, again and again (average
    linkage), each turned so that their likest ends meet. Costs n² numbers, and time n³.
    """
    between = torch.nan_to_num(distance.double(), nan=1.0).fill_diagonal_(math.inf)
    apart_at = torch.nan_to_num(distance.double(), nan=1.0).tolist()
    groups = {at: [at] for at in range(len(distance))}
    for _ in range(len(distance) - 1):
        one, other = divmod(int(between.argmin()), len(distance))
        one, other = min(one, other), max(one, other)
        sizes = len(groups[one]), len(groups[other])
        mean = (sizes[0] * between[one] + sizes[1] * between[other]) / sum(sizes)
        between[one] = between[:, one] = mean
        between[other] = between[:, other] = math.inf
        between[one, one] = math.inf
        groups[one] = _meeting(groups[one], groups.pop(other), apart_at)
    return next(iter(groups.values()), [])


def _meeting(left: list[int], right: list[int], apart_at: list[list[float]]) -> list[int]:
    """Both groups in a row, turned so that the ends that meet are the least far apart."""
    turns = [(a, b) for a in (left, left[::-1]) for b in (right, right[::-1])]
    best = min(turns, key=lambda turn: apart_at[turn[0][-1]][turn[1][0]])
    return best[0] + best[1]
