"""The weights in which two models differ: the size and the rank of the change of each matrix."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from models import Transformer

NEGLIGIBLE = 0.01
"""The share of the largest singular value below which one does not count in a rank."""
EIGENVALUES = 4
"""The cost of the eigenvalues of a symmetric matrix (n, n) in n³: measured against a product."""

Shape = tuple[int, ...]


@dataclass(frozen=True)
class MatrixChange:
    """One matrix that differs.

    `relative` is ‖W₂ − W₁‖ / ‖W₁‖ by Frobenius norms, infinite where W₁ is zero.
    """

    name: str
    relative: float
    shape: Shape

    @property
    def cost_of_rank(self) -> int:
        """Multiplications of `rank_of`."""
        small, large = sorted(self.shape)
        return small**2 * (large + EIGENVALUES * small)


@dataclass(frozen=True)
class UnpairedMatrix:
    """A matrix that the other model lacks, or has in another shape."""

    name: str
    first: Shape | None
    second: Shape | None


@dataclass(frozen=True)
class WeightChanges:
    """The matrices that differ among `compared` ones, and those that cannot be compared."""

    matrices: tuple[MatrixChange, ...]
    compared: int
    unpaired: tuple[UnpairedMatrix, ...]


@torch.no_grad()
def weight_changes(first: Transformer, second: Transformer) -> WeightChanges:
    """Compare every matrix with the one of the same name, in the order of the models."""
    ours, theirs = _matrices(first), _matrices(second)
    changes, unpaired, compared = [], [], 0
    for name in {**ours, **theirs}:
        before, after = ours.get(name), theirs.get(name)
        if before is None or after is None or before.shape != after.shape:
            shapes = (None if one is None else tuple(one.shape) for one in (before, after))
            unpaired.append(UnpairedMatrix(name, *shapes))
            continue
        compared += 1
        if torch.equal(before, after):
            continue
        norm = float(before.double().norm())
        moved = float((after.double() - before.double()).norm())
        relative = moved / norm if norm else float("inf")
        changes.append(MatrixChange(name, relative, tuple(before.shape)))
    return WeightChanges(tuple(changes), compared, tuple(unpaired))


@torch.no_grad()
def rank_of_change(first: Transformer, second: Transformer, name: str) -> int:
    """The rank of W₂ − W₁. LoRA assumes that fine-tuning has a low one (Hu et al. 2021, 4.1)."""
    return rank_of(_matrices(second)[name].double() - _matrices(first)[name].double())


def rank_of(change: Float[Tensor, "m n"]) -> int:
    """The number of singular values above 1 % of the largest; 0 where a weight is not finite.

    Their squares are the eigenvalues of C Cᵀ, or of Cᵀ C where that is smaller. The rounding error
    in float64 is far below 1 %.
    """
    if not change.isfinite().all():
        return 0
    small = change if change.shape[0] <= change.shape[1] else change.T
    squares = torch.linalg.eigvalsh(small @ small.T)
    return int((squares > NEGLIGIBLE**2 * squares[-1]).sum())


def _matrices(model: Transformer) -> Mapping[str, Tensor]:
    return {
        name.removesuffix(".weight"): weight.detach()
        for name, weight in model.named_parameters()
        if weight.dim() == 2
    }
