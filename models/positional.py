"""Position schemes: how a model knows where a token stands.

Each acts in exactly one place: added to the embedding (`embed`), rotating the queries and
keys (`rotation`) or as a bias on the scores (`bias`). Positions are integers, shared by the
batch (t) or one row per sequence (b, t).
"""

import math
from collections.abc import Callable
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from models.config import TransformerConfig
from models.rope_scaling import SCALINGS, RopeScaling

Rotation = Callable[[Tensor], Tensor]


def sinusoids(
    positions: Int[Tensor, "*t"], d_model: int, pairs: str = "adjacent"
) -> Float[Tensor, "*t d"]:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos of the same angle, in float64.

    Single precision would be off by 4e-4 at position 5,000. An odd `d_model` ends in a
    sine without its cosine. `pairs` "halves" has all sines first (Marian).
    Source: Attention Is All You Need, section 3.5.
    """
    # These are 2i, so that the exponent below is 2i/d and not 4i/d.
    even = torch.arange(0, d_model, 2, dtype=torch.float64, device=positions.device)
    frequencies = torch.exp(even * (-math.log(10_000.0) / d_model))
    angles = positions[..., None] * frequencies  # (*t, ⌈d/2⌉)
    if pairs == "halves":
        return torch.cat((angles.sin(), angles.cos()), -1)[..., :d_model]
    return torch.stack((angles.sin(), angles.cos()), -1).flatten(-2)[..., :d_model]


class Positions(nn.Module):
    """No positions at all, and the base of the other schemes."""

    max_len: float = math.inf
    """How many tokens have a position."""

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


ANGLES_AT_ONCE = 1 << 18
"""Rows × width of the table computed together: float64 angles take ten times its memory."""


class PositionalEncoding(Positions):
    """Sinusoids, kept in a table `pe` of shape (1, max_len, d_model) that is not trained.

    Called as a module it adds them: (b, t, d) -> (b, t, d).
    Source: Attention Is All You Need, section 3.5.
    """

    pe: Tensor

    def __init__(self, d_model: int, max_len: int = 5000, pairs: str = "adjacent") -> None:
        super().__init__()
        self.max_len = max_len
        self.pairs = pairs
        self.register_buffer("pe", torch.empty(1, max_len, d_model), persistent=False)
        if not self.pe.is_meta:
            self.reset_buffers()

    def reset_buffers(self) -> None:
        _, max_len, d_model = self.pe.shape
        rows = max(1, ANGLES_AT_ONCE // d_model)
        for some in torch.arange(max_len, device="cpu").split(rows):
            self.pe[0, some[0] : some[-1] + 1] = sinusoids(some, d_model, self.pairs)

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
        self.max_len = max_len
        self.offset = offset
        self.table = nn.Embedding(max_len + offset, d_model)

    def embed(self, positions: Int[Tensor, "*t"]) -> Float[Tensor, "*t d"]:
        return self.table(positions + self.offset)


class RotaryPositions(Positions):
    """Rotates each pair of numbers of a query or key by the angle position × θ^(−2i/d).

    A pair is (i, i + d/2) ("halves") or (2i, 2i + 1) ("adjacent"); only the first `d_head`
    numbers of a wider head are rotated. The product of a query and a key then depends on
    their distance alone.
    Source: RoFormer (Su et al. 2021), section 3.2.2.
    """

    def __init__(
        self,
        d_head: int,
        theta: float = 10_000.0,
        pairs: str = "halves",
        scaling: RopeScaling | None = None,
    ) -> None:
        super().__init__()
        self.d_head = d_head
        self.theta = theta
        self.pairs = pairs
        self.scaling = scaling

    def frequencies(self) -> Float[Tensor, " half"]:
        """Radians per position of every pair, fast ones first; on the CPU, as all constants."""
        even = torch.arange(0, self.d_head, 2, dtype=torch.float32, device="cpu")
        frequencies = 1.0 / self.theta ** (even / self.d_head)
        if self.scaling is None:
            return frequencies
        return SCALINGS[self.scaling.kind](frequencies, self.scaling, self.theta)

    def rotation(self, positions: Int[Tensor, "*t"]) -> Rotation:
        angles = positions[..., None] * self.frequencies().to(positions.device)
        if angles.dim() == 3:  # one row of positions per sequence: make room for the heads
            angles = angles[:, None]
        stretch = 1.0 if self.scaling is None else self.scaling.attention_factor
        cos, sin = angles.cos() * stretch, angles.sin() * stretch
        return partial(self.turn, cos=cos, sin=sin)

    def turn(
        self, x: Float[Tensor, "b h t d"], cos: Float[Tensor, "..."], sin: Float[Tensor, "..."]
    ) -> Float[Tensor, "b h t d"]:
        cos, sin = cos.to(x.dtype), sin.to(x.dtype)
        turned, rest = x[..., : self.d_head], x[..., self.d_head :]
        if self.pairs == "halves":
            first, second = turned.chunk(2, -1)
        else:
            first, second = turned[..., 0::2], turned[..., 1::2]
        both = (first * cos - second * sin, second * cos + first * sin)
        joined = (
            torch.cat(both, -1) if self.pairs == "halves" else torch.stack(both, -1).flatten(-2)
        )
        return torch.cat((joined, rest), -1) if rest.shape[-1] else joined


class RelativePositions(Positions):
    """A trained number per head and bucket of distances, added to the scores.

    Near distances have a bucket each, far ones share buckets that grow up to
    `max_distance`; unless it is causal, half the buckets are for later keys. All layers
    share it.
    Source: T5 (Raffel et al. 2020), section 2.1.
    """

    def __init__(self, n_heads: int, n_buckets: int, max_distance: int, causal: bool) -> None:
        super().__init__()
        self.max_distance = max_distance
        self.causal = causal
        self.table = nn.Embedding(n_buckets, n_heads)

    def buckets(self, offsets: Int[Tensor, "*d"]) -> Int[Tensor, "*d"]:
        """The bucket of every key position − query position."""
        side = self.table.num_embeddings // (1 if self.causal else 2)
        ahead = torch.zeros_like(offsets) if self.causal else (offsets > 0) * side
        distances = (-offsets).clamp(min=0) if self.causal else offsets.abs()
        near = side // 2
        steps = torch.log(distances.clamp(min=1).float() / near)
        far = near + (steps / math.log(self.max_distance / near) * (side - near)).long()
        return ahead + torch.where(distances < near, distances, far.clamp(max=side - 1))

    def bias(
        self, queries: Int[Tensor, "*q"], keys: Int[Tensor, "*k"], heads: slice = slice(None)
    ) -> Float[Tensor, "#b h q k"]:
        offsets = keys[..., None, :] - queries[..., :, None]  # (q, k) or (b, q, k)
        offsets = offsets[None] if offsets.dim() == 2 else offsets
        return self.table.weight[:, heads][self.buckets(offsets)].permute(0, 3, 1, 2)


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
        return torch.tensor((slopes + between)[: self.n_heads], device="cpu")

    def bias(
        self, queries: Int[Tensor, "*q"], keys: Int[Tensor, "*k"], heads: slice = slice(None)
    ) -> Float[Tensor, "#b h q k"]:
        distances = (queries[..., :, None] - keys[..., None, :]).abs()  # (q, k) or (b, q, k)
        distances = distances[None, None] if distances.dim() == 2 else distances[:, None]
        return -self.slopes().to(distances.device)[heads, None, None] * distances


def build_positions(config: TransformerConfig, causal: bool) -> Positions:
    """The scheme of one stack, which is `causal` if no query attends to later keys."""
    match config.positions:
        case "sinusoidal":
            return PositionalEncoding(config.d_model, config.max_len, config.pairs or "adjacent")
        case "learned":
            return LearnedPositions(config.d_model, config.max_len, config.position_offset)
        case "rotary":
            pairs = config.pairs or "halves"
            return RotaryPositions(
                config.rotary_width, config.rope_theta, pairs, config.rope_scaling
            )
        case "relative":
            n_buckets, max_distance = config.n_buckets, config.max_distance
            return RelativePositions(config.n_heads, n_buckets, max_distance, causal)
        case "alibi":
            return AlibiPositions(config.n_heads)
    return Positions()
