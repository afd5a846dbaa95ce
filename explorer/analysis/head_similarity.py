"""Head similarity: how alike the rows of two heads are as distributions.

Two heads are compared row by row by the Jensen–Shannon divergence of their weights, in bits:
0 for equal rows, 1 where no key has weight in both; then the mean over the rows is taken
(Clark et al. 2019, What Does BERT Look At?, section 6, take the sum). Cost grows with
heads² × rows × keys, so of a long text only rows at even distances are compared, and of very
many heads only some layers.
"""

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from explorer.inference.forward_pass import ForwardPass

CELLS_COMPARED = 100_000_000
"""Pairs of heads × rows × keys; about a second of work."""
HEADS_COMPARED = 256
"""With more of them the picture would have less than two pixels a head."""


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
    """These rows of every head of a layer, (heads, r, k), one layer after another."""
    for layer in range(forward.part(part).layers):
        heads = forward.some_heads(part, layer)
        yield torch.cat([weights[:, list(rows)].float() for weights in heads])


def _evenly(count: int, most: int) -> tuple[int, ...]:
    """At most `most` of 0 … count − 1, evenly spaced, the first and the last among them."""
    if count <= most:
        return tuple(range(count))
    if most == 1:
        return (count - 1,)
    return tuple(round(at * (count - 1) / (most - 1)) for at in range(most))


def js_divergence(one: Tensor, others: Tensor) -> Tensor:
    """Mean Jensen–Shannon divergence (n,) in bits of a head (r, k) to others (n, r, k).

    NaN where there is no row, or a weight is NaN.
    """
    middle = torch.special.entr((one + others) / 2).sum(-1)
    each = (torch.special.entr(one).sum(-1) + torch.special.entr(others).sum(-1)) / 2
    return ((middle - each) / math.log(2)).mean(-1).clamp(0, 1)


def pairwise_divergence(weights: Tensor) -> Iterator[Tensor]:
    """Divergence of every head (n, r, k) to itself and the heads after it, one after another."""
    for at in range(len(weights)):
        yield js_divergence(weights[at], weights[at:])


def divergence_matrix(rows: Sequence[Tensor]) -> Tensor:
    """The symmetric matrix (n, n) from the rows of `pairwise_divergence`; 0 on the diagonal."""
    found = torch.zeros(len(rows), len(rows))
    for at, row in enumerate(rows):
        found[at, at:] = found[at:, at] = row
    own = found.diagonal()
    own[~own.isnan()] = 0.0
    return found


def similarity_order(distance: Tensor) -> list[int]:
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
