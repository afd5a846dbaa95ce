"""The feed-forward layer: the same two (or three) projections at every position."""

from collections.abc import Callable
from functools import partial

import torch.nn.functional as F
from torch import Tensor, nn

from models.shapes import Stream
from models.tap import NO_TAP, Tap

ACTIVATION_FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu-tanh": partial(F.gelu, approximate="tanh"),
    "silu": F.silu,
}


class FeedForward(nn.Module):
    """f(x W₁ + b₁) W₂ + b₂, or (f(x W_g + b_g) ⊙ (x W₁ + b₁)) W₂ + b₂ when gated.

    Sources: Attention Is All You Need, section 3.3; GLU Variants Improve
    Transformer (Shazeer 2020), section 2.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        activation: str = "relu",
        gated: bool = False,
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.activation = ACTIVATION_FUNCTIONS[activation]
        self.gate_proj = nn.Linear(d_model, d_ff, bias=bias) if gated else None
        self.up_proj = nn.Linear(d_model, d_ff, bias=bias)
        self.down_proj = nn.Linear(d_ff, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Stream, tap: Tap = NO_TAP) -> Stream:
        x = tap("norm", x)
        if self.gate_proj is None:
            hidden = self.activation(tap("up", self.up_proj(x)))
        else:
            hidden = self.activation(tap("gate", self.gate_proj(x))) * tap("up", self.up_proj(x))
        hidden = tap("hidden", hidden)  # (b, t, d_ff)
        return tap("out", self.down_proj(self.dropout(hidden)))
