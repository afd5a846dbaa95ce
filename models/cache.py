"""Keys and values of the tokens already read, so that generating one more costs one token.

The caller of a forward pass owns the cache; the model stores nothing.
"""

from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.shapes import Keys


@dataclass
class LayerCache:
    """Keys and values of one attention layer, of which the first `length` tokens are filled.

    There is room for as many again whenever it is full, so that all of them are copied only
    when as many have been added.
    """

    keys: Keys | None = None
    values: Keys | None = None
    length: int = 0

    def read(self) -> tuple[Keys, Keys]:
        """LookupError before the first `append`."""
        if self.keys is None or self.values is None:
            raise LookupError("The cache is empty: run a pass with it first.")
        return self.keys.narrow(2, 0, self.length), self.values.narrow(2, 0, self.length)

    def append(self, k: Float[Tensor, "b n t d"], v: Float[Tensor, "b n t d"]) -> tuple[Keys, Keys]:
        """Everything so far, these included. Memory grows with the tokens held."""
        self.keys = _extended(self.keys, k, self.length)
        self.values = _extended(self.values, v, self.length)
        self.length += k.shape[2]
        return self.read()

    def back_to(self, length: int) -> None:
        """Hold the first `length` tokens. Whoever read the others still has them.

        There is no room left, so that what is added next is written into a copy.
        """
        if self.length:
            self.length = length
            self.keys, self.values = self.read()

    def take(self, rows: Int[Tensor, " b"]) -> None:
        """Hold these rows, some of them twice or not at all, with room for one token more."""
        if self.length:
            self.keys, self.values = (_rows_of(held, rows) for held in self.read())


def _extended(held: Tensor | None, new: Tensor, length: int) -> Tensor:
    """Room in which `new` follows the first `length` tokens of what is held.

    Where each head has keys of its own from now on (`HeadInputs`), it copies those it shared; once
    it has, it keeps a copy of those that it shares again.
    """
    if held is None:
        return new
    if held.shape[1] < new.shape[1]:
        held = held.repeat_interleave(new.shape[1] // held.shape[1], 1)
    elif new.shape[1] < held.shape[1]:
        new = new.repeat_interleave(held.shape[1] // new.shape[1], 1)
    end = length + new.shape[2]
    if end > held.shape[2]:
        room = new.new_empty(*new.shape[:2], 2 * end, new.shape[3])
        room[:, :, :length] = held[:, :, :length]
        held = room
    held.narrow(2, length, new.shape[2]).copy_(new)
    return held


def _rows_of(held: Tensor, rows: Tensor) -> Tensor:
    _, groups, length, width = held.shape
    room = held.new_empty(len(rows), groups, length + 1, width)
    torch.index_select(held, 0, rows, out=room[:, :, :length])
    return room


@dataclass
class BlockCache:
    """What one block of the decoder keeps: its own keys and values and those of the memory."""

    self_attn: LayerCache = field(default_factory=LayerCache)
    cross_attn: LayerCache = field(default_factory=LayerCache)


@dataclass
class KeyValueCache:
    """What a whole decoder keeps, one entry per block."""

    blocks: list[BlockCache]

    @classmethod
    def empty(cls, n_layers: int) -> "KeyValueCache":
        return cls([BlockCache() for _ in range(n_layers)])

    @property
    def length(self) -> int:
        """Tokens read so far."""
        return self.blocks[0].self_attn.length

    def take(self, rows: Int[Tensor, " b"]) -> None:
        """Keep these rows of the batch; a copy, layer by layer."""
        for block in self.blocks:
            block.self_attn.take(rows)
            block.cross_attn.take(rows)

    def back_to(self, length: int) -> None:
        """Drop all tokens but the first `length`; the memory's keys and values stay."""
        for block in self.blocks:
            block.self_attn.back_to(length)
