"""Keys and values of earlier tokens, so that one more token costs the pass of one token.

The caller of a forward pass owns the cache; the model stores nothing.
"""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from models.attention import repeat_groups
from models.shapes import Keys


@dataclass
class LayerCache:
    """Keys and values of one attention layer, of which the first `length` tokens are filled.

    A full cache doubles, so that a token is copied a constant number of times on average.
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
        """Everything so far, these included."""
        self.keys = _extended(self.keys, k, self.length)
        self.values = _extended(self.values, v, self.length)
        self.length += k.shape[2]
        return self.read()


def _extended(cached: Tensor | None, new: Tensor, length: int) -> Tensor:
    """A tensor in which `new` follows the first `length` tokens of the cache.

    Heads that once had keys of their own (`models.head_inputs`) keep copies of shared ones.
    """
    if cached is None:
        return new
    groups = max(cached.shape[1], new.shape[1])
    cached, new = repeat_groups(cached, groups), repeat_groups(new, groups)
    end = length + new.shape[2]
    if end > cached.shape[2]:
        room = new.new_empty(*new.shape[:2], 2 * end, new.shape[3])
        room[:, :, :length] = cached[:, :, :length]
        cached = room
    cached.narrow(2, length, new.shape[2]).copy_(new)
    return cached


class KeyValueCache(list[dict[str, LayerCache]]):
    """The cache of a decoder: for every block, that of each of its attentions."""

    @classmethod
    def empty(cls, n_layers: int) -> "KeyValueCache":
        return cls({"self_attn": LayerCache(), "cross_attn": LayerCache()} for _ in range(n_layers))
