"""Singular values of a head's QK and OV circuits, beside those of a random head of its size.

Both circuits are d × d and products of two matrices of the width w of the head, so at most w of
their singular values are not zero, and w × w matrices give them all.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.analysis.head_weights import HeadWeights


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The singular values (w,) of a circuit, the largest first, and those of a random head's.

    `random` are those of a product of two matrices of independent numbers of the same sizes,
    drawn from a seed and scaled to the same Frobenius norm.
    """

    values: Tensor
    random: Tensor

    @property
    def above_random(self) -> int:
        """How many singular values are larger than the largest of the random head."""
        return int((self.values > self.random[0]).sum())


def spectra(head: HeadWeights) -> tuple[Spectrum, Spectrum]:
    """Those of the QK and of the OV circuit. Costs w² × d."""
    return _spectrum(head.query, head.key), _spectrum(head.output.mT, head.value)


def singular_values_of_product(left: Tensor, right: Tensor) -> Tensor:
    """The singular values of leftᵀ right that may not be zero, of left and right (w, d)."""
    # With leftᵀ = Q R, Q turns and changes no singular value.
    inner = torch.linalg.qr(left.mT).R @ torch.linalg.qr(right.mT).R.mT
    return torch.linalg.svdvals(inner)


def _spectrum(left: Tensor, right: Tensor) -> Spectrum:
    values = singular_values_of_product(left, right)
    source = torch.Generator().manual_seed(0)
    drawn = (torch.randn(each.shape, generator=source).to(values) for each in (left, right))
    random = singular_values_of_product(*drawn)
    return Spectrum(values, random * (values.norm() / random.norm()))
