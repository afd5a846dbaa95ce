"""How one token is chosen from logits, stage by stage, and what a seeded draw takes.

Every stage is made by the functions that `models.generation` writes with, so the last
column is what it draws from.
Source of top-p: The Curious Case of Neural Text Degeneration (Holtzman et al. 2019).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from models.sampling import Sampling, choose_from, sample

ALL_OPEN = Sampling()


@dataclass(frozen=True, eq=False)
class Stages:
    """One position's choice, each (vocabulary,).

    `logits` are what the model gave, −∞ where it may not write; `plain` their softmax,
    `tempered` the same of logits ÷ temperature, `top_k` and `top_p` what is left of that
    (0 for what is cut), `final` the rest brought to a sum of 1.
    """

    logits: Tensor
    plain: Tensor
    tempered: Tensor
    top_k: Tensor
    top_p: Tensor
    final: Tensor

    @property
    def left(self) -> int:
        """How many tokens still have a chance."""
        return int((self.final > 0).sum())

    @property
    def cut_by_k(self) -> float:
        """The probability that top-k took away."""
        return float(self.tempered.sum() - self.top_k.sum())

    @property
    def cut_by_p(self) -> float:
        """The probability that top-p took away of what top-k had left."""
        return float(self.top_k.sum() - self.top_p.sum())


def stages(logits: Tensor, sampling: Sampling) -> Stages:
    """All stages of one choice (vocabulary,). Cost grows with the vocabulary, sorted once."""
    row = logits[None]
    cool = Sampling(sampling.temperature)
    after_k = replace(cool, top_k=sampling.top_k)
    tempered, kept, final = (choose_from(row, each)[0] for each in (cool, after_k, sampling))
    top_k = torch.where(kept > 0, tempered, 0.0)
    return Stages(
        logits=logits,
        plain=choose_from(row, ALL_OPEN)[0],
        tempered=tempered,
        top_k=top_k,
        top_p=torch.where(final > 0, tempered, 0.0),
        final=final,
    )


def draw(found: Stages, sampling: Sampling, seed: int, step: int = 0) -> int:
    """The token that this seed draws at this step; the likeliest at a temperature of 0.

    `generate` draws all its tokens from one seed, so what the earlier steps took of its
    chance is passed over here.
    """
    generator = chance_at(seed, step, len(found.final), sampling)
    return int(sample(found.final[None], sampling, generator)[0])


def chance_at(seed: int, step: int, vocabulary: int, sampling: Sampling) -> torch.Generator:
    """What is left of a seed's chance after so many draws."""
    generator, even = torch.Generator().manual_seed(seed), torch.ones(1, vocabulary)
    for _ in range(0 if sampling.temperature == 0 else step):
        sample(even, sampling, generator)
    return generator
