"""A factor of each row of attention weights, so that a head may attend to less than everything.

With `sink_logit` a learned logit b of each head joins the sum below the softmax, and the row sums
to σ(logsumexp(scores) − b): the softmax off by one where b is 0 (Attention Is Off By One, Miller
2023), learned in gpt-oss (OpenAI 2025). With `gated` the factor is σ(W_g x), one number for each
head and query, and so a gate of the head's output (Gated Attention for Large Language Models, Qiu
et al. 2025, the headwise form).
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from models.tap import Tap


class RowScales(nn.Module):
    """The factors of one attention; `x` is what its queries are projected from."""

    def __init__(self, d_model: int, n_heads: int, sink_logit: bool, gated: bool) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(n_heads)) if sink_logit else None
        self.gate = nn.Linear(d_model, n_heads, bias=False) if gated else None

    def forward(self, x: Float[Tensor, "b *h q D"], tap: Tap) -> Tap:
        """A tap that scales the rows, and shows every value to `tap`."""
        gate = None
        if self.gate is not None and x.dim() == 3:
            gate = self.gate(x).mT[..., None].sigmoid()
        elif self.gate is not None:  # an x for each head
            gate = (x * self.gate.weight[:, None]).sum(-1, keepdim=True).sigmoid()
        return _ScalingTap(tap, self.bias, gate)


class _ScalingTap(Tap):
    """Scales the weights; where those are not computed, the output of the head."""

    def __init__(self, tap: Tap, bias: Tensor | None, scale: Tensor | None) -> None:
        self.tap, self.bias, self.scale = tap, bias, scale

    def wants(self, name: str) -> bool:
        return self.tap.wants(name) or (name == "weights" and self.bias is not None)

    def __call__(self, name: str, value: Tensor) -> Tensor:
        value = self.tap(name, value) if name == "masked" else value
        if name == "masked" and self.bias is not None:
            share = (value.logsumexp(-1, keepdim=True) - self.bias[:, None, None]).sigmoid()
            self.scale = share if self.scale is None else share * self.scale
        if name in ("weights", "head_out") and self.scale is not None:
            value, self.scale = value * self.tap("row_scale", self.scale), None
        return value if name == "masked" else self.tap(name, value)
