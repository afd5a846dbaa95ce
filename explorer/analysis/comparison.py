"""Two maps beside each other: the same scale for both, and the difference where there is one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from explorer.analysis.head_similarity import js_divergence
from explorer.inference.forward_pass import ForwardPass
from explorer.text import Token
from models.interventions import Edit


class NothingToSubtractError(ValueError):
    """Why two maps have no difference, in one sentence."""


@dataclass(frozen=True, eq=False)
class Side:
    """One head over one text: what is drawn on one side.

    `about` says how its pass was changed, and `edits` changed it; `folder` holds its model,
    None for the one that is chosen.
    """

    title: str
    forward: ForwardPass
    part: str
    layer: int
    head: int
    about: Mapping[str, str] = field(default_factory=dict)
    edits: tuple[Edit, ...] = ()
    folder: Path | None = None

    @property
    def values(self) -> Tensor:
        return self.forward.weights(self.part, self.layer, self.head)

    @property
    def allowed(self) -> Tensor:
        return self.forward.mask(self.part, self.layer)

    @property
    def rows(self) -> tuple[Token, ...]:
        return self.forward.rows(self.part)

    @property
    def columns(self) -> tuple[Token, ...]:
        return self.forward.columns(self.part)


@dataclass(frozen=True, eq=False)
class Difference:
    """Second − first, cell by cell (rows, columns); `note` says how the cells were aligned."""

    values: Tensor
    allowed: Tensor
    note: str

    @property
    def largest(self) -> float:
        """The largest change of a cell, up or down."""
        return float(self.values.nan_to_num().abs().max()) if self.values.numel() else 0.0


def difference(first: Side, second: Side) -> Difference:
    """Cell by cell, token by token in their order. NothingToSubtractError when they do not match.

    Cost grows with rows × columns.
    """
    mine, theirs = first.values, second.values
    if mine.shape != theirs.shape:
        (q1, k1), (q2, k2) = mine.shape, theirs.shape
        raise NothingToSubtractError(
            f"One map has {q1:,} queries and {k1:,} keys, the other {q2:,} and {k2:,}, so there is "
            "no difference to show: choose texts of equally many tokens, or a model that cuts "
            "them alike."
        )
    return Difference(theirs - mine, first.allowed | second.allowed, _aligned(first, second))


def divergence(first: Side, second: Side) -> float:
    """How far the rows of two maps of one shape are apart, in bits: 0 is alike, 1 the most.

    The mean Jensen–Shannon divergence over the rows in which both see something.
    """
    both = first.allowed.any(-1) & second.allowed.any(-1)
    if not both.any():
        return float("nan")
    return float(js_divergence(first.values[both].double(), second.values[both].double()[None])[0])


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
