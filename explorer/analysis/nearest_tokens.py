"""Nearest tokens: those of the vocabulary with the largest cosine similarity."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.analysis.principal_components import CHUNK, at_length_one
from explorer.system.cooperative import interruptible


@dataclass(frozen=True, eq=False)
class NearestTokens:
    """The nearest tokens of each vector, the nearest first: IDs (…, k) and cosines (…, k).

    The cosine is −∞ where there is no other token, or a vector is zero.
    """

    ids: Tensor
    cosines: Tensor

    def pairs(self, *place: int) -> list[tuple[int, float]]:
        """The nearest tokens of one vector: token IDs and cosines."""
        ids, cosines = self.ids[place].tolist(), self.cosines[place].tolist()
        return [(i, c) for i, c in zip(ids, cosines, strict=True) if c > -torch.inf]


def nearest_tokens(
    table: Tensor, vectors: Tensor, count: int, but: Tensor | None = None
) -> NearestTokens:
    """The nearest rows of a table (v, d) to vectors (n, d), without the token `but[n]` of each.

    Costs n · v · d: for one vector about as long as reading the table once.
    """
    *_, nearest = nearest_by_part(table, vectors, count, but)
    return nearest


def nearest_by_part(
    table: Tensor, vectors: Tensor, count: int, but: Tensor | None = None
) -> Iterator[NearestTokens]:
    """The nearest among the rows so far, part by part of the table: `parts_of(table)` times."""
    units = at_length_one(vectors.detach().double()).float()
    aimless = ~units.any(-1)
    count = min(count, len(table))
    best = torch.full((len(units), count), -torch.inf)
    ids = torch.zeros(len(units), count, dtype=torch.long)
    for start in interruptible(range(0, len(table), CHUNK)):
        rows = table[start : start + CHUNK].detach().float()
        cosines = (units @ rows.mT) / rows.norm(dim=-1)
        cosines = cosines.nan_to_num(nan=-torch.inf)  # of a zero row
        cosines[aimless] = -torch.inf
        if but is not None:
            own = but - start
            here = (own >= 0) & (own < len(rows))
            cosines[here.nonzero()[:, 0], own[here]] = -torch.inf
        top = cosines.topk(min(count, len(rows)), 1)
        both = torch.cat([best, top.values], 1)
        merged = both.topk(count, 1)
        best = merged.values
        ids = torch.cat([ids, top.indices + start], 1).gather(1, merged.indices)
        yield NearestTokens(ids, best)


def parts_of(table: Tensor) -> int:
    """The number of parts of a table."""
    return -(-len(table) // CHUNK)
