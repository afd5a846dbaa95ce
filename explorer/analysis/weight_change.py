"""In which weights two models differ: how far each matrix moved, and over how many directions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from models import Transformer

NEGLIGIBLE = 0.01
"""Of the largest singular value: a smaller one is not counted in a rank."""
MOST_OPERATIONS = 3e10
"""Of all ranks together: some three seconds on a core. Above it none is counted."""


@dataclass(frozen=True)
class MatrixChange:
    """One matrix that differs.

    `relative` is ‖W₂ − W₁‖ / ‖W₁‖ by Frobenius norms, infinite where W₁ is zero. `rank` is the
    number of singular values of W₂ − W₁ above 1 % of the largest, out of `full_rank`; None where
    ranks were not counted.
    """

    name: str
    relative: float
    rank: int | None
    full_rank: int


@dataclass(frozen=True)
class WeightChanges:
    """The matrices that differ, of `compared`; `alone` have no partner of their shape."""

    matrices: tuple[MatrixChange, ...]
    compared: int
    alone: int


@torch.no_grad()
def weight_changes(first: Transformer, second: Transformer) -> WeightChanges:
    """Compare every matrix with that of its name.

    A low rank is what LoRA assumes of fine-tuning (Hu et al. 2021, section 4.1). Cost: for each
    matrix (m, n) that differs, m · n · min(m, n) for its rank.
    """
    ours, theirs = _matrices(first), _matrices(second)
    shared = {name for name in ours if name in theirs and ours[name].shape == theirs[name].shape}
    moved = [name for name in ours if name in shared and not torch.equal(ours[name], theirs[name])]
    operations = sum(ours[name].numel() * min(ours[name].shape) for name in moved)
    found = []
    for name in moved:
        before = ours[name].double()
        change = theirs[name].double() - before
        rank = rank_of(change) if operations <= MOST_OPERATIONS else None
        norm = float(before.norm())
        relative = float(change.norm()) / norm if norm else float("inf")
        found.append(MatrixChange(name, relative, rank, min(change.shape)))
    alone = len(ours.keys() | theirs.keys()) - len(shared)
    return WeightChanges(tuple(found), len(shared), alone)


def rank_of(change: Float[Tensor, "m n"]) -> int:
    """How many singular values are above 1 % of the largest: by those of the smaller product.

    Their squares are the eigenvalues of C Cᵀ, whose rounding in float64 is far below 1 %.
    """
    small = change if change.shape[0] <= change.shape[1] else change.T
    squares = torch.linalg.eigvalsh(small @ small.T)
    return int((squares > NEGLIGIBLE**2 * squares[-1]).sum())


def _matrices(model: Transformer) -> Mapping[str, Tensor]:
    return {
        name.removesuffix(".weight"): each.detach()
        for name, each in model.named_parameters()
        if each.dim() == 2
    }
