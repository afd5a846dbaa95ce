"""Two maps beside each other: the same scale for both, and the difference where there is one."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.analysis.similarity import apart
from explorer.reading import Reading
from explorer.text import Token


class NothingToSubtractError(ValueError):
    """Why two maps have no difference, in one sentence."""


@dataclass(frozen=True, eq=False)
class Side:
    """One head over one text: what is drawn on one side."""

    title: str
    reading: Reading
    part: str
    layer: int
    head: int

    @property
    def values(self) -> Tensor:
        return self.reading.weights(self.part, self.layer, self.head)

    @property
    def allowed(self) -> Tensor:
        return self.reading.mask(self.part, self.layer)

    @property
    def rows(self) -> tuple[Token, ...]:
        return self.reading.rows(self.part)

    @property
    def columns(self) -> tuple[Token, ...]:
        return self.reading.columns(self.part)


@dataclass(frozen=True, eq=False)
class Difference:
    """Second − first, cell by cell (rows, columns), and how far the rows are apart.

    `divergence` is the mean Jensen–Shannon divergence of the rows in bits, over those in
    which both see something. `note` says how the cells were aligned.
    """

    values: Tensor
    allowed: Tensor
    divergence: float
    note: str


def difference(first: Side, second: Side) -> Difference:
    """Cell by cell, token by token in their order. NothingToSubtractError when they do not match.

    Cost grows with rows × columns.
    """
    mine, theirs = first.values, second.values
    if mine.shape != theirs.shape:
        (q1, k1), (q2, k2) = mine.shape, theirs.shape
        raise NothingToSubtractError(
            f"One map has {q1:,} queries and {k1:,} keys, the other {q2:,} and {k2:,}, so there is "
            "no difference to show: choose texts of equally many tokens."
        )
    both = first.allowed.any(-1) & second.allowed.any(-1)
    far = apart(mine[both].double(), theirs[both].double()[None])
    return Difference(
        theirs - mine,
        first.allowed | second.allowed,
        float(far[0]) if both.any() else float("nan"),
        _aligned(first, second),
    )


def _aligned(first: Side, second: Side) -> str:
    pairs = [
        *zip(first.rows, second.rows, strict=True),
        *zip(first.columns, second.columns, strict=True),
    ]
    others = sum(one.label != other.label for one, other in pairs)
    if not others:
        return "Both maps are over the same tokens."
    return (
        f"The maps are over different tokens ({others:,} of {len(pairs):,} labels differ), so a "
        "cell is compared with the cell at its place."
    )


def common_top(first: Side, second: Side) -> float:
    """Where the colours of both end: the largest weight of the two maps."""
    largest = torch.stack([side.values.nan_to_num().amax() for side in (first, second)]).max()
    return float(largest) or 1.0
