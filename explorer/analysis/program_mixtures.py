"""The mixture of at most three programs that describes a head, by non-negative least squares.

For one, two or three of all programs the least squared error has a closed form, and the best set
without a negative share is the best mixture: so every set is tried, for all heads of a layer
together. Shares are then scaled to sum to 1, as rows of attention do.
Shapes: p programs, h heads, n cells of all maps of some lines, s sets.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import torch
from torch import Tensor

MOST_PROGRAMS = 3
COMPARED = 12
"""Sets with the smallest squared errors, of which the one with the largest overlap is taken."""
SIMPLER = 0.005
"""The overlap that one more program must add."""
SINGULAR = 1e-6
"""Sets of programs that are alike on these lines have a smaller determinant than this."""
SMALLEST_SHARE = 0.02
"""A smaller share than this is left out: no reader could see it."""


@lru_cache(maxsize=8)
def _sets(programs: int, size: int) -> Tensor:
    return torch.tensor([*combinations(range(programs), size)]).view(-1, size)


@dataclass(frozen=True, eq=False)
class SetsOfPrograms:
    """Maps (p, n), and for all sets of a size their members and inverse Gram matrices."""

    maps: Tensor
    sets: tuple[tuple[Tensor, Tensor], ...]

    @classmethod
    def of(cls, maps: Tensor) -> "SetsOfPrograms":
        """Costs p² · n, and p³ small inverses."""
        gram = (maps @ maps.mT).double()
        norm = gram.diagonal().sqrt().clamp(min=1e-12)
        sets = []
        for size in range(1, min(MOST_PROGRAMS, len(maps)) + 1):
            members = _sets(len(maps), size)
            units = (gram / (norm[:, None] * norm))[members[:, :, None], members[:, None]]
            members = members[torch.linalg.det(units) > SINGULAR]
            sets.append((members, torch.linalg.inv(gram[members[:, :, None], members[:, None]])))
        return cls(maps, tuple(sets))

    def fit(self, weights: Tensor) -> Tensor:
        """The shares (h, p) for heads with these weights (h, n); costs h · s, and 12 · h · n."""
        together, heads = (self.maps @ weights.mT).double(), torch.arange(len(weights))
        gains, shares = [], []
        for members, inverse in self.sets:
            solved = inverse @ together[members]
            gain = (solved * together[members]).sum(1)
            best = gain.masked_fill((solved < 0).any(1), -1.0).topk(min(COMPARED, len(gain)), dim=0)
            gains.append(best.values)
            for place in best.indices:
                row = torch.zeros(len(weights), len(self.maps), dtype=torch.double)
                shares.append(row.scatter(1, members[place], solved[place, :, heads]))
        best = torch.cat(gains).topk(min(COMPARED, len(shares)), dim=0)
        some = _scaled(torch.stack(shares)[best.indices, heads]).float()
        overlaps = torch.stack([overlap(weights, one @ self.maps, (-1,)) for one in some])
        return some[(overlaps.nan_to_num() - SIMPLER * (some > 0).sum(-1)).argmax(0), heads]


def _scaled(shares: Tensor) -> Tensor:
    """Shares that sum to 1, without tiny and negative ones."""
    shares = shares.clamp(min=0)
    shares = shares * (shares >= SMALLEST_SHARE * shares.sum(-1, keepdim=True))
    return shares / shares.sum(-1, keepdim=True).clamp(min=1e-12)


def overlap(weights: Tensor, maps: Tensor, over: tuple[int, ...]) -> Tensor:
    """The IoU Σ min(a, p) / Σ max(a, p) of two maps over these dimensions; NaN if both are 0."""
    return torch.minimum(weights, maps).sum(over) / torch.maximum(weights, maps).sum(over)
