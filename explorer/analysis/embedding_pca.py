"""A token embedding in three dimensions: its principal components, and nearest neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

MOST_ROWS, FEW_ROWS, WIDE = 8_192, 1_024, 1_024
"""The components are those of so many tokens, evenly spread over a larger vocabulary; of few
where the embedding is wider than this."""
CHUNK = 16_384
"""Rows of the table that are gone through at once."""
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

    Costs 2 · v · d for each distinct token of the text; for the components see there.
    """
    table = table.detach()
    chosen = tuple(dict.fromkeys(tokens))[:MOST_CHOSEN]
    measured = rows_measured(table)
    mean, axes, shares = components(table[torch.tensor(measured)].double())
    near = neighbours(table, chosen, nearest)
    around = [token for found in near for token, _ in found]
    ids = tuple(dict.fromkeys([*chosen, *around, *_evenly(len(table), most)]))
    places = (table[torch.tensor(ids)].double() - mean) @ axes
    return EmbeddingSpace(ids, places, chosen, near, shares, len(table), len(measured))


def rows_measured(table: Tensor) -> list[int]:
    """The tokens whose components are taken: fewer of a wide embedding, to take under a second."""
    return _evenly(len(table), MOST_ROWS if table.shape[1] <= WIDE else FEW_ROWS)


def components(rows: Tensor) -> tuple[Tensor, Tensor, tuple[float, float, float]]:
    """The mean (d), the three directions of most variance (d, 3), and their shares of it.

    The largest entry of each direction is positive, so that its sign is the same every time.
    Of n rows costs n · d · min(n, d) and min(n, d)³.
    """
    mean = rows.mean(0)
    centred = rows - mean
    if len(rows) < rows.shape[1]:
        values, left = torch.linalg.eigh(centred @ centred.T)
        vectors = nn.functional.normalize(centred.T @ left, dim=0)
    else:
        values, vectors = torch.linalg.eigh(centred.T @ centred)
    values, axes = values.clamp(min=0).flip(0), vectors.flip(1)[:, :3]
    largest = axes.gather(0, axes.abs().argmax(0, keepdim=True))
    axes = axes * largest.sign()
    missing = 3 - axes.shape[1]
    if missing > 0:
        axes = nn.functional.pad(axes, (0, missing))
        values = nn.functional.pad(values, (0, missing))
    total = float(values.sum()) or 1.0
    first, second, third = (float(value) / total for value in values[:3])
    return mean, axes, (first, second, third)


def neighbours(
    table: Tensor, tokens: Sequence[int], nearest: int
) -> tuple[tuple[tuple[int, float], ...], ...]:
    """The nearest other tokens to each by cosine similarity; a zero vector has none."""
    if not tokens:
        return ()
    asked = nn.functional.normalize(table[torch.tensor(tokens)].float(), dim=-1)
    parts = table.split(CHUNK)  # a table in half precision is made larger part by part
    cosines = torch.cat([_cosines(part.float(), asked) for part in parts])
    cosines[torch.tensor(tokens), torch.arange(len(tokens))] = -torch.inf
    best = cosines.topk(min(nearest, len(table) - 1), 0)
    found = []
    for at, vector in enumerate(asked):
        pairs = zip(best.indices[:, at].tolist(), best.values[:, at].tolist(), strict=True)
        near = tuple((other, cosine) for other, cosine in pairs if cosine > -torch.inf)
        found.append(near if vector.any() else ())
    return tuple(found)


def _cosines(rows: Tensor, units: Tensor) -> Tensor:
    """Of rows (n, d) and vectors of length one (t, d); −∞ where a row has no direction."""
    cosines = (rows @ units.T) / rows.norm(dim=-1, keepdim=True)
    return cosines.nan_to_num(nan=-torch.inf)


def _evenly(count: int, most: int) -> list[int]:
    """At most so many whole numbers below `count`, evenly spread."""
    if count <= most:
        return list(range(count))
    return [place * count // most for place in range(most)]
