"""How one token is chosen from logits, stage by stage, and which token a seed samples.

The functions of `models.sampling` compute every stage, so it samples from `final`.
Source of top-p: The Curious Case of Neural Text Degeneration (Holtzman et al. 2019).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from models.sampling import Sampling, choose_from, sample

ALL_OPEN = Sampling()


@dataclass(frozen=True, eq=False)
class SamplingStages:
    """The stages of one choice, each (vocabulary,).

    `logits` are −∞ for tokens that are never generated; `plain` is their softmax, `tempered` the
    softmax of logits ÷ temperature, `top_k` and `top_p` the probabilities that remain of it (0
    where cut), and `final` the remaining probabilities renormalized.
    """

    logits: Tensor
    plain: Tensor
    tempered: Tensor
    top_k: Tensor
    top_p: Tensor
    final: Tensor

    @property
    def left(self) -> int:
        """The number of tokens with a probability above 0."""
        return int((self.final > 0).sum())

    @property
    def cut_by_k(self) -> float:
        return float(self.tempered[self.top_k == 0].sum())

    @property
    def cut_by_p(self) -> float:
        """The probability that top-p cuts after top-k."""
        return float(self.top_k[self.top_p == 0].sum())

    def rank(self, token: int) -> int:
        """The rank of a token by its logit, 1 for the likeliest."""
        return 1 + int((self.logits > self.logits[token]).sum())

    def likeliest(self, count: int, also: Sequence[int] = ()) -> list[int]:
        """`count` token IDs, highest logit first; up to half of them from `also`."""
        others = list(dict.fromkeys(also))[: count // 2]
        best = self.logits.topk(min(count, len(self.logits))).indices.tolist()
        missing = [token for token in others if token not in best]
        for token in reversed(best.copy()):
            if len(best) + len(missing) > count and token not in others:
                best.remove(token)
        return sorted((*best, *missing), key=lambda token: -float(self.logits[token]))


def sampling_stages(logits: Tensor, sampling: Sampling) -> SamplingStages:
    """All stages of one choice, each (vocabulary,). It sorts the vocabulary once."""
    row = logits[None]
    cool = Sampling(sampling.temperature)
    after_k = replace(cool, top_k=sampling.top_k)
    tempered, after_top_k, final = (choose_from(row, step)[0] for step in (cool, after_k, sampling))
    return SamplingStages(
        logits=logits,
        plain=choose_from(row, ALL_OPEN)[0],
        tempered=tempered,
        top_k=torch.where(after_top_k > 0, tempered, 0.0),
        top_p=torch.where(final > 0, tempered, 0.0),
        final=final,
    )


def sample_token(stages: SamplingStages, sampling: Sampling, seed: int, step: int = 0) -> int:
    """The token that this seed samples at this step; the likeliest at temperature 0.

    `generate` samples all tokens from one generator, so the samples of earlier steps are skipped.
    """
    generator = generator_at(seed, step, len(stages.final), sampling)
    return int(sample(stages.final[None], sampling, generator)[0])


def generator_at(seed: int, step: int, vocabulary: int, sampling: Sampling) -> torch.Generator:
    """The random generator of a seed after `step` samples."""
    generator, even = torch.Generator().manual_seed(seed), torch.ones(1, vocabulary)
    for _ in range(0 if sampling.temperature == 0 else step):
        sample(even, sampling, generator)
    return generator
