"""The doubled exponent of the sinusoids, measured beside the right formula."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.views.museum.mistakes.position_mistakes import (
    barely_moving,
    doubled_sinusoids,
    spread_at,
)
from models.positional import sinusoids

DOCUMENT = {"d_model": 512, "places": 60, "offset": 5}
"""The size at which the document's mistake is measured: width, positions, and a distance."""


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
