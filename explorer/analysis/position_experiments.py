"""The doubled exponent of the sinusoids, measured beside the right formula."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.positional import sinusoids

DOCUMENT = {"d_model": 512, "places": 60, "offset": 5}
"""The size at which the document's mistake is measured: width, positions, and a distance."""
STILL = 0.01
"""A dimension that moves less than this over all positions barely moves."""


def doubled_sinusoids(positions: Int[Tensor, " t"], d_model: int) -> Float[Tensor, "t d"]:
    """sin(pos / 10000^(2i/d)) and cos(pos / 10000^(2(i+1)/d)) for i = 0, 2, 4, …, in float64.

    The exponent is twice that of `sinusoids`, a mistake that circulates.
    """
    i = torch.arange(0, d_model, 2, dtype=torch.float64)
    sines = (positions[:, None] / 10_000 ** (2 * i / d_model)).sin()
    cosines = (positions[:, None] / 10_000 ** (2 * (i + 1) / d_model)).cos()
    return torch.stack((sines, cosines), -1).flatten(-2)[:, :d_model]


def barely_moving(table: Float[Tensor, "t d"], limit: float = STILL) -> int:
    """How many dimensions stay within `limit` over all positions of the table."""
    return int(((table.max(0).values - table.min(0).values) < limit).sum())


def spread_at(table: Float[Tensor, "t d"], offset: int) -> float:
    """Standard deviation of the product of two positions that are `offset` apart.

    Zero where only their distance counts.
    """
    return float((table[:-offset] * table[offset:]).sum(-1).std())


@dataclass(frozen=True, eq=False)
class MeasuredTable:
    """A table of positions (t, d) and the measurements that reveal the mistake.

    `first` are the first four dimensions of position 1, `still` counts those that vary by less
    than `STILL` over all positions, `spread` is the standard deviation of the products of two
    positions `offset` apart: 0 where the product depends on the distance alone.
    """

    table: Tensor
    first: tuple[float, ...]
    still: int
    spread: float


def measure_table(table: Tensor, offset: int) -> MeasuredTable:
    """The measurements of a table of at least `offset` + 2 positions."""
    first = tuple(table[1, :4].tolist())
    return MeasuredTable(table, first, barely_moving(table), spread_at(table, offset))


def right_and_doubled(
    d_model: int, places: int, offset: int
) -> tuple[MeasuredTable, MeasuredTable]:
    """The formula as it is in the paper, and with the exponent doubled."""
    positions = torch.arange(places)
    right = sinusoids(positions, d_model)
    return measure_table(right, offset), measure_table(
        doubled_sinusoids(positions, d_model), offset
    )
