"""The singular values of a matrix, and those of a random matrix of the same size.

A matrix of m × n independent numbers of standard deviation s has no singular value far
above s (√m + √n), the edge of Marchenko and Pastur (1967); Johnstone (2001) gives the width of
the fluctuations around it. Larger singular values come from training.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from explorer.system.cooperative import Report
from explorer.system.limits import SINGULAR_SIDE

DECOMPOSED = 2_500_000_000
"""The most rows × columns × the smaller of them for a decomposition: about a second."""
MULTIPLIED = 500_000_000_000
"""The most for multiplying the matrix with itself: about twenty seconds."""
FLUCTUATIONS = 4.0
"""Widths of the Tracy–Widom law: one random matrix in 10,000 is this far beyond the edge."""
SMALLEST_SIDE = 8
"""A matrix with a smaller side has too few singular values to tell whether it is random."""
BLOCK = 512
"""The most rows and columns that are tested: a corner of a random matrix is random."""


class SingularValuesError(ValueError):
    """Why there are no singular values to show, in one sentence."""


@dataclass(frozen=True, eq=False)
class SingularValues:
    """All singular values of a matrix, the largest first, and the method that computed them."""

    values: Tensor
    shape: tuple[int, int]
    rms: float
    method: str

    @property
    def edge(self) -> float:
        """The largest singular value of a random matrix with the same root mean square."""
        return random_edge(self.shape, self.rms)

    @property
    def stable_rank(self) -> float:
        """The sum of the squared singular values over the largest squared: at most the rank."""
        largest = float(self.values[0]) if len(self.values) else 0.0
        return float((self.values / largest).square().sum()) if largest else 0.0

    @property
    def above_edge(self) -> int:
        """How many singular values are larger than those of a random matrix."""
        return int((self.values > self.edge).sum())

    def directions_for(self, share: float) -> int:
        """How many directions hold this share of the squared norm."""
        squares = self.values.double().square()
        if not len(squares) or float(squares.sum()) == 0.0:
            return 0
        cumulative = squares.cumsum(0) / squares.sum()
        return min(int((cumulative < share).sum()) + 1, len(squares))


def singular_values_of(matrix: Tensor, report: Report | None = None) -> SingularValues:
    """The singular values, by the method that the size allows; SingularValuesError without one.

    `report` is called with the share that is done, where it takes long.
    """
    matrix = matrix.detach()
    if matrix.dim() != 2 or not matrix.numel():
        raise SingularValuesError("A vector has no singular values: choose a matrix instead.")
    if not all(bool(torch.isfinite(part).all()) for part in matrix.split(BLOCK)):
        raise SingularValuesError(
            "This matrix holds numbers that are not finite, so it has no singular values: "
            "see Diagnostics."
        )
    rows, columns = matrix.shape
    small = min(rows, columns)
    size = f"{rows:,} × {columns:,}"
    if rows * columns * small <= DECOMPOSED:
        values = torch.linalg.svdvals(matrix.double())
        method = "Exact: a singular value decomposition."
    elif rows * columns * small <= MULTIPLIED and SINGULAR_SIDE.allows(small):
        values = _from_product(matrix, report)
        method = (
            f"{size} is large, so these are the square roots of the eigenvalues of the matrix "
            "times its transpose, in float64: exact, except values below 1e-7 of the largest."
        )
    else:
        raise SingularValuesError(
            f"A matrix of {size} is too large for its singular values to be computed here: "
            "choose a smaller one, or see its norm under Norms."
        )
    # The squares of the singular values add up to those of the numbers.
    rms = float(torch.linalg.vector_norm(values)) / math.sqrt(rows * columns)
    return SingularValues(values, (rows, columns), rms, method)


def _from_product(matrix: Tensor, report: Report | None = None) -> Tensor:
    """Roots of the eigenvalues of the smaller of W Wᵀ and Wᵀ W, summed slice by slice."""
    tall = matrix if matrix.shape[0] >= matrix.shape[1] else matrix.mT
    width = tall.shape[1]
    product = torch.zeros(width, width, dtype=torch.float64)
    done = 0
    for rows in tall.split(max(1, (1 << 20) // width)):
        rows = rows.double()
        product += rows.mT @ rows
        done += len(rows)
        if report is not None:
            report(done / len(tall))
    return torch.linalg.eigvalsh(product).clamp_min(0).sqrt().flip(0)


def random_singular_values(shape: tuple[int, int], rms: float) -> Tensor:
    """The singular values of a random matrix of this size, the largest first.

    They are the quantiles of the Marchenko–Pastur law.
    """
    small, large = min(shape), max(shape)
    ratio = small / large
    low, high = (1 - math.sqrt(ratio)) ** 2, (1 + math.sqrt(ratio)) ** 2
    # Steps of an angle are fine where the density is steep: at both ends.
    angle = torch.linspace(0, math.pi, 4096, dtype=torch.float64)
    at = low + (high - low) * (1 - angle.cos()) / 2
    density = ((at - low).clamp_min(0) * (high - at).clamp_min(0)).sqrt() / at.clamp_min(1e-12)
    mass = torch.cumulative_trapezoid(density, at)
    mass = torch.cat([mass.new_zeros(1), mass / mass[-1]])
    quantiles = (torch.arange(small, dtype=torch.float64) + 0.5) / small
    squares = torch.from_numpy(np.interp(quantiles.numpy(), mass.numpy(), at.numpy()))
    return (rms * (large * squares).sqrt()).flip(0)


def random_edge(shape: tuple[int, int], rms: float) -> float:
    """The end of the singular values of a random matrix: the edge plus four Tracy–Widom widths."""
    first, second = math.sqrt(max(shape) - 1 or 1), math.sqrt(min(shape))
    width = (first + second) * (1 / first + 1 / second) ** (1 / 3)
    return rms * math.sqrt((first + second) ** 2 + FLUCTUATIONS * width)


def looks_random(matrix: Tensor) -> bool:
    """Whether the largest singular value is one that a random matrix of this size could have.

    It tests a corner of at most 512 × 512; a matrix with a side below 8 never looks random.
    """
    corner = matrix.detach()[:BLOCK, :BLOCK].double()
    rows, columns = corner.shape
    if min(rows, columns) < SMALLEST_SIDE or not bool(torch.isfinite(corner).all()):
        return False
    rms = float(corner.square().mean().sqrt())
    if rms == 0.0:
        return False
    return float(torch.linalg.svdvals(corner)[0]) <= random_edge((rows, columns), rms)
