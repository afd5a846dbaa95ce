"""The difference and divergence of two attention maps, over common groups of tokens."""

from collections.abc import Sequence

import torch
from torch import Tensor

from explorer.analysis.head_similarity import js_divergence
from explorer.analysis.word_groups import Group, sum_groups


def map_difference(first: Tensor, second: Tensor) -> Tensor:
    """second − first, cell by cell, (queries, keys) of both."""
    return second - first


def pool_map(weights: Tensor, rows: Sequence[Group], columns: Sequence[Group]) -> Tensor:
    """Attention weights (queries, keys) between groups of tokens, (rows, columns).

    Each group has the places of its tokens. The weight on a group of keys is the sum over them,
    and the row of a group of queries the mean over them: a row sums to 1 if every key is in a
    group. A group without keys has weight 0; groups of one token change nothing. Cost: every
    weight is read once.
    """
    pooled = sum_groups(sum_groups(weights, columns, -1), rows, -2)
    return pooled / torch.tensor([len(group) for group in rows]).view(-1, 1)


def pool_mask(allowed: Tensor, rows: Sequence[Group], columns: Sequence[Group]) -> Tensor:
    """Whether a query of a group may attend to a key of a group, (rows, columns) of bool."""
    return pool_map(allowed.float(), rows, columns) > 0


def map_divergence(first: Tensor, second: Tensor, rows: Tensor) -> float:
    """The mean Jensen–Shannon divergence of the rows of two maps, in bits, from 0 to 1.

    It is over `rows`, (queries,) of bool; NaN if there are none.
    """
    if not rows.any():
        return float("nan")
    return float(js_divergence(first[rows].double(), second[rows].double()[None])[0])


def common_scale(*maps: Tensor) -> float:
    """The end of a common colour scale of all maps: their largest weight."""
    return float(torch.stack([weights.nan_to_num().amax() for weights in maps]).max()) or 1.0


def largest_change(difference: Tensor) -> float:
    """The largest change of a cell, up or down."""
    return float(difference.nan_to_num().abs().max()) if difference.numel() else 0.0
