"""Where a token stands, told to the model in one of five ways, picked by name in `POSITIONS`.

Each way acts in exactly one place: added to the embedding (`embed`), turning the
queries and keys (`rotate`) or as a bias on the scores (`bias`). The other two do
nothing. Positions are integers, shared by the batch (t) or one row per sequence (b, t).
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from models.config import TransformerConfig


def sinusoids(positions: Int[Tensor, "*t"], d_model: int) -> Float[Tensor, "*t d"]:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos of the same angle, in float64.

    Single precision would be off by 4e-4 at position 5,000. An odd `d_model` ends in a
    sine without its cosine.
    Source: Attention Is All You Need, section 3.5.
    """
    # These are 2i, so that the exponent below is 2i/d and not 4i/d.
    pairs = torch.arange(0, d_model, 2, dtype=torch.float64, device=positions.device)
    frequencies = torch.exp(pairs * (-math.log(10_000.0) / d_model))
    angles = positions[..., None] * frequencies  # (*t, ⌈d/2⌉)
    return torch.stack((angles.sin(), angles.cos()), -1).flatten(-2)[..., :d_model]


class Positions(nn.Module):
    """No positions at all, and the base of the schemes that give some."""

    def embed(self, positions: Int[Tensor, "*t"]) -> Float[Tensor, "*t d"] | None:
        """What is added to the embedding at these positions."""
        return None

    def rotate(
        self, x: Float[Tensor, "b h t d"], positions: Int[Tensor, "*t"]
    ) -> Float[Tensor, "b h t d"]:
        """The queries or keys as they stand at these positions."""
        return x

    def bias(
        self,
        queries: Int[Tensor, "*q"],
        keys: Int[Tensor, "*k"],
        heads: slice = slice(None),
    ) -> Float[Tensor, "#b h q k"] | None:
        """What is added to the scores of `heads`, by the distance of query and key."""
        return None

    def reset_buffers(self) -> None:
        """Fill the tables that no checkpoint holds."""


class PositionalEncoding(Positions):
    """Sinusoids, kept in a table `pe` of shape (1, max_len, d_model) that is not trained.

    Called as a module it adds them: (b, t, d) -> (b, t, d).
    Source: Attention Is All You Need, section 3.5.
    """

    pe: Tensor

    def __init__(self, d_model: int, max_len: int = 5000) -> None:
        super().__init__()
        self.register_buffer("pe", torch.empty(1, max_len, d_model), persistent=False)
        if not self.pe.is_meta:
            self.reset_buffers()

    def reset_buffers(self) -> None:
        _, max_len, d_model = self.pe.shape
        self.pe = sinusoids(torch.arange(max_len), d_model)[None].to(self.pe.dtype)

    def embed(self, positions: Int[Tensor, "*t"]) -> Float[Tensor, "*t d"]:
        return self.pe[0, positions]

    def forward(self, x: Float[Tensor, "b t d"]) -> Float[Tensor, "b t d"]:
        return x + self.pe[:, : x.shape[1]]


class LearnedPositions(Positions):
    """One trained vector per position. Source: BERT (Devlin et al. 2018), section 3."""

    def __init__(self, d_model: int, max_len: int) -> None:
        super().__init__()
        self.table = nn.Embedding(max_len, d_model)

    def embed(self, positions: Int[Tensor, "*t"]) -> Float[Tensor, "*t d"]:
        return self.table(positions)


class RotaryPositions(Positions):
    """Turns each pair (i, i + d/2) of a query or key by position × θ^(−2i/d).

    The product of a query and a key then depends on their distance alone.
    Source: RoFormer (Su et al. 2021), section 3.2.2.
    """

    def __init__(self, d_head: int, theta: float = 10_000.0) -> None:
        super().__init__()
        self.d_head = d_head
        self.theta = theta

    def angles(self, positions: Int[Tensor, "*t"]) -> Float[Tensor, "*t half"]:
        pairs = torch.arange(0, self.d_head, 2, dtype=torch.float32, device=positions.device)
        return positions[..., None] * self.theta ** -(pairs / self.d_head)

    def rotate(
        self, x: Float[Tensor, "b h t d"], positions: Int[Tensor, "*t"]
    ) -> Float[Tensor, "b h t d"]:
        angles = self.angles(positions)
        if angles.dim() == 3:  # one row of positions per sequence: make room for the heads
            angles = angles[:, None]
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        first, second = x.chunk(2, -1)
        return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


class AlibiPositions(Positions):
    """−slope × |query − key| on the scores, with one slope per head.

    Source: Train Short, Test Long (Press et al. 2021), section 3.
    """

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads

    def slopes(self) -> Float[Tensor, " h"]:
        """2^(−8/n), 2^(−16/n), …; heads beyond a power of two take those between."""
        whole = 2 ** math.floor(math.log2(self.n_heads))
        slopes = [2 ** (-8 * (i + 1) / whole) for i in range(whole)]
        between = [2 ** (-4 * (i + 1) / whole) for i in range(0, 2 * whole, 2)]
        return torch.tensor((slopes + between)[: self.n_heads])

    def bias(
        self,
        queries: Int[Tensor, "*q"],
        keys: Int[Tensor, "*k"],
        heads: slice = slice(None),
    ) -> Float[Tensor, "#b h q k"]:
        distances = (queries[..., :, None] - keys[..., None, :]).abs()  # (q, k) or (b, q, k)
        distances = distances[None, None] if distances.dim() == 2 else distances[:, None]
        return -self.slopes().to(distances.device)[heads, None, None] * distances


def _build_sinusoidal(config: TransformerConfig) -> Positions:
    return PositionalEncoding(config.d_model, config.max_len)


def _build_learned(config: TransformerConfig) -> Positions:
    return LearnedPositions(config.d_model, config.max_len)


def _build_rotary(config: TransformerConfig) -> Positions:
    return RotaryPositions(config.head_width, config.rope_theta)


def _build_alibi(config: TransformerConfig) -> Positions:
    return AlibiPositions(config.n_heads)


POSITIONS = {
    "sinusoidal": _build_sinusoidal,
    "learned": _build_learned,
    "rotary": _build_rotary,
    "alibi": _build_alibi,
    "none": lambda config: Positions(),
}
