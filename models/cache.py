"""Keys and values of the tokens already read, so that writing one more costs one token.

The caller of a pass owns the cache; the model stores nothing.
"""

from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass
class LayerCache:
    """Keys and values of one attention layer, (b, g, k, d) each; None before the first pass."""

    keys: Float[Tensor, "b g k d"] | None = None
    values: Float[Tensor, "b g k d"] | None = None

    def read(self) -> tuple[Float[Tensor, "b g k d"], Float[Tensor, "b g k d"]]:
        if self.keys is None or self.values is None:
            raise LookupError("The cache is empty: run a pass with it first.")
        return self.keys, self.values

    def append(
        self, k: Float[Tensor, "b g t d"], v: Float[Tensor, "b g t d"]
    ) -> tuple[Float[Tensor, "b g k d"], Float[Tensor, "b g k d"]]:
        """Everything seen so far, these included. Memory and copying grow with the tokens held."""
        if self.keys is not None and self.values is not None:
            k, v = torch.cat((self.keys, k), 2), torch.cat((self.values, v), 2)
        self.keys, self.values = k, v
        return k, v


@dataclass
class BlockCache:
    """What one block of the decoder remembers: its own past and its view of the memory."""

    self_attn: LayerCache = field(default_factory=LayerCache)
    cross_attn: LayerCache = field(default_factory=LayerCache)


@dataclass
class KeyValueCache:
    """What a whole decoder remembers, one entry per block."""

    blocks: list[BlockCache]

    @classmethod
    def empty(cls, n_layers: int) -> "KeyValueCache":
        return cls([BlockCache() for _ in range(n_layers)])

    @property
    def length(self) -> int:
        """Tokens read so far."""
        keys = self.blocks[0].self_attn.keys
        return 0 if keys is None else keys.shape[2]
