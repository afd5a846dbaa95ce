"""Thumbnails of every head of a forward pass."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch.nn.functional import max_pool2d, pad

from explorer.inference.forward_pass import ForwardPass

SIDE = 32
"""The most cells of a thumbnail along one side."""


@dataclass(frozen=True, eq=False)
class Thumbnails:
    """`cells` (layers, heads, q, k): each the largest weight of `pooled` × `pooled` of them."""

    cells: Tensor
    pooled: int

    @property
    def shape(self) -> torch.Size:
        return self.cells.shape


_made: WeakKeyDictionary[ForwardPass, dict[str, Thumbnails]] = WeakKeyDictionary()


def thumbnails_of(forward: ForwardPass, part: str) -> Thumbnails:
    """Those of one kind of attention, kept as long as the forward pass is.

    Made head by head: time grows with layers × heads × tokens², memory does not.
    """
    made = _made.setdefault(forward, {})
    if part not in made:
        n = cells_pooled(len(forward.rows(part)), len(forward.columns(part)))
        layers = [
            torch.cat([largest_of(heads, n) for heads in forward.some_heads(part, layer)])
            for layer in range(forward.part(part).layers)
        ]
        made[part] = Thumbnails(torch.stack(layers), n)
    return made[part]


def thumbnails_of_weights(weights: Tensor) -> Thumbnails:
    """Those of weights (layers, heads, queries, keys) that are there already."""
    n = cells_pooled(*weights.shape[2:])
    return Thumbnails(largest_of(weights, n), n)


def cells_pooled(queries: int, keys: int) -> int:
    """How many cells a side become one."""
    return max(1, -(-max(queries, keys) // SIDE))


def largest_of(weights: Tensor, n: int) -> Tensor:
    """The largest of every n × n weights (…, q, k): a mean would lose thin lines.

    NaN where one of them is.
    """
    small = weights.detach().float().clamp_min(0)
    if n == 1:
        return small
    queries, keys = weights.shape[-2:]
    return max_pool2d(pad(small, (0, -keys % n, 0, -queries % n)), n)
