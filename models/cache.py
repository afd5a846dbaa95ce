"""Keys and values of the tokens already read, so that writing one more costs one token.

The caller of a pass owns the cache; the model stores nothing.
"""

from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass
class Growing:
    """A tensor that gets longer in its third dimension, of which the first `length` are filled.

    There is room for as many again whenever it is full, so that what is held is copied
    only when that many have come.
    """

    room: Float[Tensor, "b g room d"] | None = None
    length: int = 0

    def read(self) -> Float[Tensor, "b g k d"]:
        if self.room is None:
            raise LookupError("The cache is empty: run a pass with it first.")
        return self.room.narrow(2, 0, self.length)

    def append(self, new: Float[Tensor, "b g t d"]) -> Float[Tensor, "b g k d"]:
        """Everything so far, the new ones included."""
        begin, end = self.length, self.length + new.shape[2]
        if self.room is None:
            self.room = new
        else:
            if end > self.room.shape[2]:
                held = self.read()
                self.room = new.new_empty(*new.shape[:2], 2 * end, new.shape[3])
                self.room[:, :, :begin] = held
            self.room.narrow(2, begin, new.shape[2]).copy_(new)
        self.length = end
        return self.read()

    def take(self, rows: Int[Tensor, " b"]) -> None:
        """Hold these rows, some of them twice or not at all, with room for one token more."""
        held = self.read()
        self.room = held.new_empty(len(rows), held.shape[1], self.length + 1, held.shape[3])
        torch.index_select(held, 0, rows, out=self.room[:, :, : self.length])


@dataclass
class LayerCache:
    """Keys and values of one attention layer."""

    keys: Growing = field(default_factory=Growing)
    values: Growing = field(default_factory=Growing)

    @property
    def length(self) -> int:
        """Tokens read so far."""
        return self.keys.length

    def read(self) -> tuple[Float[Tensor, "b g k d"], Float[Tensor, "b g k d"]]:
        return self.keys.read(), self.values.read()

    def append(
        self, k: Float[Tensor, "b g t d"], v: Float[Tensor, "b g t d"]
    ) -> tuple[Float[Tensor, "b g k d"], Float[Tensor, "b g k d"]]:
        """Everything seen so far, these included. Memory grows with the tokens held."""
        return self.keys.append(k), self.values.append(v)

    def take(self, rows: Int[Tensor, " b"]) -> None:
        if self.length:
            self.keys.take(rows)
            self.values.take(rows)


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
        return self.blocks[0].self_attn.length

    def take(self, rows: Int[Tensor, " b"]) -> None:
        """Remember what these sequences of the batch do; a copy, layer by layer."""
        for block in self.blocks:
            block.self_attn.take(rows)
            block.cross_attn.take(rows)

    def back_to(self, length: int) -> None:
        """Forget the tokens behind the first `length`, not what they looked at."""
        for block in self.blocks:
            block.self_attn.keys.length = block.self_attn.values.length = length
