"""Layer normalisation and its root-mean-square variant."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class LayerNorm(nn.Module):
    """γ ⊙ (x − μ) / √(σ² + ε) + β over the last dimension, σ² with divisor d.

    Source: Layer Normalization (Ba et al. 2016), section 3.
    """

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


class RMSNorm(nn.Module):
    """γ ⊙ x / √(mean(x²) + ε) over the last dimension.

    Source: Root Mean Square Layer Normalization (Zhang and Sennrich 2019), section 3.
    """

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)


NORM_LAYERS = {"layer": LayerNorm, "rms": RMSNorm}
