"""Thumbnails of every head of a forward pass, and all weights of a small one."""

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch.nn.functional import max_pool2d

from explorer.inference.forward_pass import ForwardPass

THUMBNAIL_SIDE = 32
"""The most cells of a thumbnail along one side."""
MOST_EXACT = 1 << 19
"""The most weights of all heads together that are kept exactly: 1 MB at 16 bits each."""
LARGEST_WEIGHT = 1 + 1e-6
"""The largest weight after rounding; where one is larger, or negative, none are kept exactly."""


@dataclass(frozen=True, eq=False)
class Thumbnails:
    """`cells` (layers, heads, q, k): each is the largest of `pooled` × `pooled` weights.

    `exact` are the weights themselves, where there are few, and `allowed` (layers, q, k) is the
    mask of each layer.
    """

    cells: Tensor
    pooled: int
    exact: Tensor | None = None
    allowed: Tensor | None = None

    @property
    def shape(self) -> torch.Size:
        return self.cells.shape

    @cached_property
    def digest(self) -> str:
        """A hash of the exact weights: passes with the same heads share it. Empty without them."""
        if self.exact is None:
            return ""
        return blake2b(self.exact.cpu().numpy().tobytes(), digest_size=16).hexdigest()


_made: WeakKeyDictionary[ForwardPass, dict[str, Thumbnails]] = WeakKeyDictionary()


def thumbnails_of(forward: ForwardPass, part: str) -> Thumbnails:
    """The thumbnails of one kind of attention, cached as long as the forward pass lives.

    Computed head by head: time grows with layers × heads × tokens², memory does not.
    """
    by_part = _made.setdefault(forward, {})
    if part not in by_part:
        n = cells_pooled(len(forward.rows(part)), len(forward.columns(part)))
        layers = [
            torch.cat([largest_of(heads, n) for heads in forward.some_heads(part, layer)])
            for layer in range(forward.part(part).layers)
        ]
        by_part[part] = Thumbnails(torch.stack(layers), n, *exact_weights(forward, part))
    return by_part[part]


def exact_weights(forward: ForwardPass, part: str) -> tuple[Tensor, Tensor] | tuple[None, None]:
    """Every weight in single precision, and the mask of every layer; None where there are many."""
    of, size = forward.part(part), len(forward.rows(part)) * len(forward.columns(part))
    if of.layers * of.heads * size > MOST_EXACT:
        return None, None
    weights = forward.all_weights(part).detach()
    numbers = weights[~weights.isnan()]
    if weights.dtype != torch.float32 or ((numbers < 0) | (numbers > LARGEST_WEIGHT)).any():
        return None, None
    return weights, torch.stack([forward.mask(part, layer) for layer in range(of.layers)])


def thumbnails_of_weights(weights: Tensor) -> Thumbnails:
    """The thumbnails of these weights (layers, heads, queries, keys)."""
    n = cells_pooled(*weights.shape[2:])
    return Thumbnails(largest_of(weights, n), n)


def cells_pooled(queries: int, keys: int) -> int:
    """The number of weights along each side of one cell."""
    return max(1, -(-max(queries, keys) // THUMBNAIL_SIDE))


def largest_of(weights: Tensor, n: int) -> Tensor:
    """The largest of every n × n weights (…, q, k): a mean would hide thin lines.

    NaN where one of the weights is NaN.
    """
    small = weights.detach().float().clamp_min(0)
    return small if n == 1 else max_pool2d(small, n, ceil_mode=True)
