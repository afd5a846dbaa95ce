"""Position schemes that add a bias to the scores: relative buckets and ALiBi."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from models.positional import Positions


class RelativePositions(Positions):
    """A trained number per head and bucket of distances, shared by all layers.

    Near distances have a bucket each, far ones share buckets that grow up to
    `max_distance`; unless it is causal, half the buckets are for later keys.
    Source: T5 (Raffel et al. 2020), section 2.1.
    """

    def __init__(self, n_heads: int, n_buckets: int, max_distance: int, causal: bool) -> None:
        super().__init__()
        self.max_distance, self.causal = max_distance, causal
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
