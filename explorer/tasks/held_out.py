"""Which examples are never trained on: chosen by a hash of their token IDs.

A hash needs no list, so it also splits sets that are too large to enumerate, and an
example is on the same side for every seed and every run.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Int
from torch import Tensor

ONE_IN = 8
"""One example in this many is held out."""

Rows = Int[Tensor, "b t"]


def is_held_out(rows: Rows, one_in: int = ONE_IN) -> Bool[Tensor, "b"]:
    """Whether each row of token IDs is held out; zeros at the end change nothing."""
    places = torch.arange(1, rows.shape[1] + 1)
    mixed = (rows * (places * 0x9E3779B1 + 0x7F4A7C15) % 0x7FFFFFFF).sum(-1)
    mixed = (mixed ^ (mixed >> 13)) * 0x5BD1E995 % 0x7FFFFFFF
    mixed = (mixed ^ (mixed >> 15)) * 0x27D4EB2F % 0x7FFFFFFF
    return (mixed ^ (mixed >> 11)) % one_in == 0


def draw_training(
    draw: Callable[[int], Rows], count: int, identity: Callable[[Rows], Rows] = lambda rows: rows
) -> Rows:
    """`count` rows of `draw` that are not held out.

    `identity` is what the hash reads of a row, where that is not the row itself.
    """
    rows = draw(count)
    while (held := is_held_out(identity(rows))).any():
        rows[held] = draw(int(held.sum()))
    return rows


def draw_held_out(
    draw: Callable[[int], Rows], count: int, identity: Callable[[Rows], Rows] = lambda rows: rows
) -> Rows:
    """`count` different rows of `draw` that are held out, or as many as there are."""
    rows = draw(0)
    for _ in range(20):
        more = draw(count * ONE_IN)
        rows = torch.cat([rows, more[is_held_out(identity(more))]]).unique(dim=0)
        if len(rows) >= count:
            break
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))
    return rows[order[:count]]
