"""Principal components of many vectors of length one: the directions in which they differ most.

At length one the distance of two vectors follows from their cosine similarity alone:
|a − b|² = 2 − 2 cos(a, b). Source: On Lines and Planes of Closest Fit (Pearson 1901).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from explorer.system.cooperative import interruptible

WORK = 60_000_000_000
"""The most multiplications of a covariance, n · d² of n rows: about two seconds of one core."""
DOUBLE = 4_000_000_000
"""The most multiplications in float64; larger covariances use float32."""
FEW_ROWS, WIDE = 1_024, 1_024
"""Of vectors wider than `WIDE`, only `FEW_ROWS` rows are used, and the products of rows."""
CHUNK = 16_384
"""Rows of a table in one step, so that a table in half precision is widened in parts."""
SEED = 0
AXES = 3


@dataclass(frozen=True, eq=False)
class PrincipalAxes:
    """The mean (d), the three directions of most variance (d, 3), and their shares of it.

    They are of `rows` vectors out of `size`.
    """

    mean: Tensor
    directions: Tensor
    shares: tuple[float, float, float]
    rows: int
    size: int

    def places(self, vectors: Tensor) -> Tensor:
        """The places of vectors (…, d), at length one, on the three axes, (…, 3) in float64."""
        return (at_length_one(vectors.double()) - self.mean) @ self.directions

    def share_of(self, vectors: Tensor) -> float | None:
        """The share of the variance of these vectors (n, d) that the three axes hold.

        The variance is around their own mean; None where it is zero.
        """
        centred = at_length_one(vectors.double())
        centred = centred - centred.mean(0)
        total = float(centred.square().sum())
        if not total > 0:  # also of NaN
            return None
        return float((centred @ self.directions).square().sum()) / total


def at_length_one(vectors: Tensor) -> Tensor:
    """Vectors (…, d) at length one; a zero vector stays zero."""
    return nn.functional.normalize(vectors, dim=-1, eps=torch.finfo(vectors.dtype).tiny)


def rows_measured(table: Tensor) -> Tensor:
    """The rows whose components are computed: all, or a fixed sample that is fast enough."""
    size, width = table.shape
    most = WORK // width**2 if width <= WIDE else FEW_ROWS
    return sample_rows(size, most)


def sample_rows(size: int, most: int) -> Tensor:
    """At most `most` whole numbers below `size`, in order; the same every time."""
    if size <= most:
        return torch.arange(size)
    return torch.randperm(size, generator=torch.Generator().manual_seed(SEED))[:most].sort().values


def principal_axes(table: Tensor) -> PrincipalAxes:
    """The axes of the rows of a table (v, d), by the eigenvectors of their covariance.

    The largest entry of each direction is positive, so that its sign is the same every time.
    n rows cost n · d² and d³, or n² · d and n³ where there are fewer rows than numbers in each.
    LinAlgError where a number is not finite.
    """
    measured = rows_measured(table)
    mean = torch.zeros(table.shape[1], dtype=torch.float64)
    for rows in _rows_at_length_one(table, measured):
        mean += rows.sum(0, dtype=torch.float64) / len(measured)
    if len(measured) < len(mean):
        (rows,) = _rows_at_length_one(table, measured)
        centred = rows.double() - mean
        values, left = torch.linalg.eigh(centred @ centred.mT)
        vectors = nn.functional.normalize(centred.mT @ left, dim=0)
    else:
        scatter = torch.zeros(len(mean), len(mean), dtype=torch.float64)
        for rows in _rows_at_length_one(table, measured):
            centred = rows - mean.to(rows.dtype)
            scatter += (centred.mT @ centred).double()
        values, vectors = torch.linalg.eigh(scatter)
    values, directions = values.clamp(min=0).flip(0), vectors.flip(1)[:, :AXES]
    largest = directions.gather(0, directions.abs().argmax(0, keepdim=True))
    directions = directions * largest.sign()
    missing = AXES - directions.shape[1]
    if missing > 0:
        directions = nn.functional.pad(directions, (0, missing))
        values = nn.functional.pad(values, (0, missing))
    total = float(values.sum()) or 1.0
    first, second, third = (float(value) / total for value in values[:AXES])
    return PrincipalAxes(mean, directions, (first, second, third), len(measured), len(table))


def _rows_at_length_one(table: Tensor, measured: Tensor) -> Iterator[Tensor]:
    """The measured rows part by part, in float64 where that is fast."""
    precise = len(measured) * table.shape[1] ** 2 <= DOUBLE
    for some in interruptible(measured.split(CHUNK)):
        rows = table.detach()[some]
        yield at_length_one(rows.double() if precise else rows.float())
