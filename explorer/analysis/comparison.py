"""Two attention maps compared: their difference, how far apart they are, one colour scale."""

from __future__ import annotations

import torch
from torch import Tensor

from explorer.analysis.head_similarity import js_divergence


class DifferentSizesError(ValueError):
    """Two maps have no difference; the message says why and what to do."""


def map_difference(first: Tensor, second: Tensor) -> Tensor:
    """second − first, cell by cell, (queries, keys). DifferentSizesError unless of one shape."""
    if first.shape != second.shape:
        (q1, k1), (q2, k2) = first.shape, second.shape
        raise DifferentSizesError(
            f"One map has {q1:,} queries and {k1:,} keys, the other {q2:,} and {k2:,}, so there is "
            "no difference to show: choose texts of the same number of tokens, or a model with "
            "the same tokenization."
        )
    return second - first


def map_divergence(first: Tensor, second: Tensor, rows: Tensor) -> float:
    """How far apart the rows of two maps are, in bits: 0 is alike, 1 the most.

    The mean Jensen–Shannon divergence over `rows`, (queries,) of bool; NaN if there are none.
    """
    if not rows.any():
        return float("nan")
    return float(js_divergence(first[rows].double(), second[rows].double()[None])[0])


def common_scale(*maps: Tensor) -> float:
    """Where one colour scale of all maps ends: their largest weight."""
    return float(torch.stack([each.nan_to_num().amax() for each in maps]).max()) or 1.0


def largest_change(difference: Tensor) -> float:
    """The largest change of a cell, up or down."""
    return float(difference.nan_to_num().abs().max()) if difference.numel() else 0.0
