"""Head similarity: how similar the rows of two heads are as distributions.

It is the mean over the rows of the Jensen–Shannon divergence of their weights, in bits: 0 for
equal rows, 1 where no key has weight in both (Clark et al. 2019, What Does BERT Look At?, section
6, take the sum). Cost grows with heads² × rows × keys, so only evenly spaced rows of a long text
are compared, and only some layers of a model with very many heads.
"""

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from explorer.analysis.head_metrics import shares_of
from explorer.inference.forward_pass import ForwardPass

CELLS_COMPARED = 100_000_000
"""The most pairs of heads × rows × keys: about a second of work."""
HEADS_COMPARED = 256
"""The most heads: with more, the picture would have less than two pixels per head."""


def layers_compared(layers: int, heads: int) -> tuple[int, ...]:
    """Evenly spaced layers, the last among them, with at most HEADS_COMPARED heads together."""
    return _evenly(layers, max(1, HEADS_COMPARED // heads))


def rows_compared(forward: ForwardPass, part: str) -> tuple[int, ...]:
    """Evenly spaced rows for at most CELLS_COMPARED; fully masked rows are left out."""
    shape, keys = forward.part(part), len(forward.columns(part))
    masks = [forward.mask(part, layer).any(-1) for layer in range(shape.layers)]
    visible = torch.stack(masks).all(0).nonzero()[:, 0].tolist()
    n = min(shape.layers * shape.heads, HEADS_COMPARED)
    most = max(1, CELLS_COMPARED // max(1, n * n // 2 * keys))
    return tuple(visible[at] for at in _evenly(len(visible), most))


def rows_of_heads(forward: ForwardPass, part: str, rows: Sequence[int]) -> Iterator[Tensor]:
    """These rows of every head over their sums, (heads, r, k), one layer after another."""
    for layer in range(forward.part(part).layers):
        heads = forward.some_heads(part, layer)
        yield torch.cat([shares_of(weights[:, list(rows)].float()) for weights in heads])


def _evenly(count: int, most: int) -> tuple[int, ...]:
    """At most `most` of 0 … count − 1, evenly spaced, the first and the last among them."""
    if count <= most:
        return tuple(range(count))
    if most == 1:
        return (count - 1,)
    return tuple(round(at * (count - 1) / (most - 1)) for at in range(most))


def js_divergence(head: Tensor, others: Tensor) -> Tensor:
    """Mean Jensen–Shannon divergence (n,) in bits of a head (r, k) to others (n, r, k).

    NaN where there is no row, or a weight is NaN.
    """
    middle = torch.special.entr((head + others) / 2).sum(-1)
    own = (torch.special.entr(head).sum(-1) + torch.special.entr(others).sum(-1)) / 2
    return ((middle - own) / math.log(2)).mean(-1).clamp(0, 1)


def pairwise_divergence(weights: Tensor) -> Iterator[Tensor]:
    """Divergence of every head (n, r, k) to itself and the heads after it, one after another."""
    yield from (js_divergence(weights[at], weights[at:]) for at in range(len(weights)))


def divergence_matrix(rows: Sequence[Tensor]) -> Tensor:
    """The symmetric matrix (n, n) from the rows of `pairwise_divergence`; 0 on the diagonal."""
    matrix = torch.zeros(len(rows), len(rows))
    for at, row in enumerate(rows):
        matrix[at, at:] = matrix[at:, at] = row
    own = matrix.diagonal()
    own[~own.isnan()] = 0.0
    return matrix


def similarity_order(distance: Tensor) -> list[int]:
    """An order of the heads in which similar ones are next to each other.

    The two groups with the smallest mean distance are joined, again and again (average linkage),
    each in the direction in which the most similar ends meet. Costs n² numbers, and time n³.
    """
    between = torch.nan_to_num(distance.double(), nan=1.0).fill_diagonal_(math.inf)
    apart_at = torch.nan_to_num(distance.double(), nan=1.0).tolist()
    groups = {at: [at] for at in range(len(distance))}
    for _ in range(len(distance) - 1):
        first, second = divmod(int(between.argmin()), len(distance))
        first, second = min(first, second), max(first, second)
        sizes = len(groups[first]), len(groups[second])
        mean = (sizes[0] * between[first] + sizes[1] * between[second]) / sum(sizes)
        between[first] = between[:, first] = mean
        between[second] = between[:, second] = math.inf
        between[first, first] = math.inf
        left, right = groups[first], groups.pop(second)
        turns = [(a, b) for a in (left, left[::-1]) for b in (right, right[::-1])]
        ends = min(turns, key=lambda turn: apart_at[turn[0][-1]][turn[1][0]])
        groups[first] = ends[0] + ends[1]
    return next(iter(groups.values()), [])
