"""Position schemes: how a model knows where a token stands.

Each acts in exactly one place: added to the embedding (`embed`), rotating the queries and
keys (`rotation`) or as a bias on the scores (`bias`). Positions are integers, shared by the
batch (t) or one row per sequence (b, t).
"""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from models.shapes import Rotation


def token_positions(keep: Bool[Tensor, "b t"]) -> Int[Tensor, "b t"]:
    """The position of every token among the real ones: padding on the left does not count."""
    return (keep.cumsum(-1) - 1).clamp(min=0)


def sinusoids(
    positions: Int[Tensor, "*t"], d_model: int, pairs: str = "adjacent"
) -> Float[Tensor, "*t d"]:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos of the same angle, in float64.

    Single precision would be off by 4e-4 at position 5,000. An odd `d_model` ends in a
    sine without its cosine. `pairs` "halves" has all sines first (Marian).
    Source: Attention Is All You Need, section 3.5.
    """
    even = torch.arange(0, d_model, 2, dtype=torch.float64, device=positions.device)  # these are 2i
    frequencies = torch.exp(even * (-math.log(10_000.0) / d_model))
    angles = positions[..., None] * frequencies  # (*t, ⌈d/2⌉)
    if pairs == "halves":
        return torch.cat((angles.sin(), angles.cos()), -1)[..., :d_model]
    return torch.stack((angles.sin(), angles.cos()), -1).flatten(-2)[..., :d_model]


class Positions(nn.Module):
    """No positions; the base of the other schemes."""

    max_len: float = math.inf
    """The largest number of tokens."""

    def embed(self, positions: Int[Tensor, "*t"]) -> Float[Tensor, "*t d"] | None:
        """What is added to the embedding at these positions."""
        return None

    def rotation(self, positions: Int[Tensor, "*t"]) -> Rotation | None:
        """The function that rotates queries or keys (b, h, t, d) at these positions."""
        return None

    def bias(
        self, queries: Int[Tensor, "*q"], keys: Int[Tensor, "*k"], heads: slice = slice(None)
    ) -> Float[Tensor, "#b h q k"] | None:
        """What is added to the scores of `heads`, by the positions of query and key."""
        return None

    def reset_buffers(self) -> None:
        """Fill the tables that no checkpoint holds."""


class PositionalEncoding(Positions):
    """Sinusoids, kept in a table `pe` of shape (1, max_len, d_model) that is not trained.

    Called as a module it adds them: (b, t, d) -> (b, t, d).
    Source: Attention Is All You Need, section 3.5.
    """

    pe: Tensor

    def __init__(self, d_model: int, max_len: int = 5000, pairs: str = "adjacent") -> None:
        super().__init__()
        self.max_len, self.pairs = max_len, pairs
        self.register_buffer("pe", torch.empty(1, max_len, d_model), persistent=False)
        if not self.pe.is_meta:
            self.reset_buffers()

    def reset_buffers(self) -> None:
        _, max_len, d_model = self.pe.shape
        for some in torch.arange(max_len, device="cpu").split(512):  # float64 takes memory
            self.pe[0, some] = sinusoids(some, d_model, self.pairs).to(self.pe)

    def embed(self, positions: Int[Tensor, "*t"]) -> Float[Tensor, "*t d"]:
        return self.pe[0, positions]

    def forward(self, x: Float[Tensor, "b t d"]) -> Float[Tensor, "b t d"]:
        return x + self.pe[:, : x.shape[1]]


class LearnedPositions(Positions):
    """One trained vector per position, from row `offset` of the table on.

    Source: BERT (Devlin et al. 2018), section 3.
    """

    def __init__(self, d_model: int, max_len: int, offset: int = 0) -> None:
        super().__init__()
        self.max_len, self.offset = max_len, offset
        self.table = nn.Embedding(max_len + offset, d_model)

    def embed(self, positions: Int[Tensor, "*t"]) -> Float[Tensor, "*t d"]:
        return self.table(positions + self.offset)
