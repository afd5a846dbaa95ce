"""The exponent of the sinusoids, doubled: the index already steps by two, the code doubles it."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from explorer.views.museum.mistakes.leaf_copy import copied, stacks
from models.config import TransformerConfig
from models.positional import PositionalEncoding
from models.transformer import Transformer

STILL = 0.01
"""A dimension that moves less than this over all positions barely moves."""


def doubled_sinusoids(positions: Int[Tensor, " t"], d_model: int) -> Float[Tensor, "t d"]:
    """sin(pos / 10000^(2i/d)) and cos(pos / 10000^(2(i+1)/d)) for i = 0, 2, 4, …, in float64."""
    i = torch.arange(0, d_model, 2, dtype=torch.float64)
    sines = (positions[:, None] / 10_000 ** (2 * i / d_model)).sin()
    cosines = (positions[:, None] / 10_000 ** (2 * (i + 1) / d_model)).cos()
    return torch.stack((sines, cosines), -1).flatten(-2)[:, :d_model]


class DoubledEncoding(PositionalEncoding):
    """The table of sinusoids with the doubled exponent."""

    def reset_buffers(self) -> None:
        _, max_len, d_model = self.pe.shape
        self.pe[0] = doubled_sinusoids(torch.arange(max_len), d_model)


def doubled_exponent(model: Transformer) -> Transformer:
    wrong = copied(model)
    for stack in stacks(wrong):
        stack.positions = DoubledEncoding(model.config.d_model, model.config.max_len)
    return wrong


def needs_sinusoids(config: TransformerConfig) -> str | None:
    if config.positions != "sinusoidal":
        return f"it has no sinusoids: its positions are called {config.positions}"
    if config.pairs == "halves":
        return "its table has all sines first, and the mistake is one of a sine beside its cosine"
    return None


def barely_moving(table: Float[Tensor, "t d"], limit: float = STILL) -> int:
    """How many dimensions stay within `limit` over all positions of the table."""
    return int(((table.max(0).values - table.min(0).values) < limit).sum())


def spread_at(table: Float[Tensor, "t d"], offset: int) -> float:
    """Standard deviation of the product of two positions that are `offset` apart.

    Zero where only their distance counts.
    """
    return float((table[:-offset] * table[offset:]).sum(-1).std())
