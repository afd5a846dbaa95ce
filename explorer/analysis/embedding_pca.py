"""A token embedding in three dimensions: its principal components, and nearest neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

MOST_ROWS = 8_192
"""Tokens that the components are computed from: evenly spread over a larger vocabulary."""
MOST_DRAWN = 1_500
MOST_CHOSEN = 24
NEAREST = 3


@dataclass(frozen=True, eq=False)
class EmbeddingSpace:
    """Some tokens of a vocabulary of `size`, at their principal components.

    `neighbours[i]` are the nearest tokens to `chosen[i]` by cosine similarity, the nearest first.
    `shares` are the parts of the variance on the three axes; `rows` were measured for it.
    """

    ids: tuple[int, ...]
    places: Tensor
    chosen: tuple[int, ...]
    neighbours: tuple[tuple[tuple[int, float], ...], ...]
    shares: tuple[float, float, float]
    size: int
    rows: int


def embedding_space(
    table: Tensor, tokens: Sequence[int], most: int = MOST_DRAWN, nearest: int = NEAREST
) -> EmbeddingSpace:
    """Of an embedding (v, d): an even sample, the text's tokens and their neighbours.

    Costs d³ for the components and v · d for each distinct token of the text.
    """
    table = table.detach().float()
    chosen = tuple(dict.fromkeys(tokens))[:MOST_CHOSEN]
    mean, axes, shares = components(table)
    near = neighbours(table, chosen, nearest)
    around = [token for found in near for token, _ in found]
    ids = tuple(dict.fromkeys([*chosen, *around, *_evenly(len(table), most)]))
    places = (table[torch.tensor(ids)].double() - mean) @ axes
    rows = min(len(table), MOST_ROWS)
    return EmbeddingSpace(ids, places, chosen, near, shares, len(table), rows)


def components(table: Tensor) -> tuple[Tensor, Tensor, tuple[float, float, float]]:
    """The mean (d), the three directions of most variance (d, 3), and their shares of it.

    The largest entry of each direction is positive, so that its sign is the same every time.
    """
    rows = table[torch.tensor(_evenly(len(table), MOST_ROWS))].double()
    mean = rows.mean(0)
    centred = rows - mean
    values, vectors = torch.linalg.eigh(centred.T @ centred)
    values, vectors = values.clamp(min=0).flip(0), vectors.flip(1)[:, :3]
    largest = vectors.gather(0, vectors.abs().argmax(0, keepdim=True))
    vectors = vectors * largest.sign()
    missing = 3 - vectors.shape[1]
    if missing > 0:
        vectors = torch.nn.functional.pad(vectors, (0, missing))
        values = torch.nn.functional.pad(values, (0, missing))
    total = float(values.sum()) or 1.0
    first, second, third = (float(value) / total for value in values[:3])
    return mean, vectors, (first, second, third)


def neighbours(
    table: Tensor, tokens: Sequence[int], nearest: int
) -> tuple[tuple[tuple[int, float], ...], ...]:
    """The nearest other tokens to each by cosine similarity; a zero vector has none."""
    lengths = table.norm(dim=-1)
    found = []
    for token in tokens:
        cosines = (table @ table[token]) / (lengths * lengths[token])
        cosines[token] = -torch.inf
        cosines = cosines.nan_to_num(nan=-torch.inf)
        best = cosines.topk(min(nearest, len(table) - 1))
        pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        found.append(tuple((other, cosine) for other, cosine in pairs if cosine >= -1.01))
    return tuple(found)


def _evenly(count: int, most: int) -> list[int]:
    """At most so many whole numbers below `count`, evenly spread."""
    if count <= most:
        return list(range(count))
    return [place * count // most for place in range(most)]
