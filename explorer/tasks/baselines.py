"""Baselines for trained models, which only count."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

import torch
from jaxtyping import Int
from torch import Tensor

Ids = Int[Tensor, "t"]
Labelled = Sequence[tuple[str, int]]

TRUST = (3.0, 10.0, 30.0, 100.0, 300.0)
"""The occurrences of a token after which its own followers count as much as the average."""


def bigram_nats(training: Ids, held_out: Ids, vocab_size: int) -> float:
    """Nats per held-out token of a smoothed bigram model.

    It mixes the counts of a token's followers with the counts of all tokens; the more often a
    token occurs, the more its own followers weigh. The best mixture is chosen on the last tenth of
    the training tokens, so the held-out tokens are read only once.
    """
    cut = len(training) * 9 // 10
    trial = _Bigram(training[:cut], vocab_size)
    trust = min(TRUST, key=lambda trust: trial.nats(training[cut:], trust))
    return _Bigram(training, vocab_size).nats(held_out, trust)


class _Bigram:
    def __init__(self, ids: Ids, vocab_size: int) -> None:
        ones = torch.ones(len(ids) - 1, dtype=torch.float64)
        self.followers = torch.zeros(vocab_size, vocab_size, dtype=torch.float64)
        self.followers.index_put_((ids[:-1], ids[1:]), ones, accumulate=True)
        counts = torch.bincount(ids, minlength=vocab_size).double() + 0.5
        self.frequency = counts / counts.sum()

    def nats(self, ids: Ids, trust: float) -> float:
        before, after = ids[:-1], ids[1:]
        together = self.followers[before, after] + trust * self.frequency[after]
        return -(together / (self.followers[before].sum(-1) + trust)).log().mean().item()


class NaiveBayes:
    """Multinomial naive Bayes on words and pairs of neighbouring words, add-one smoothed."""

    def __init__(self, labelled: Labelled) -> None:
        self.counts: dict[int, Counter[str]] = defaultdict(Counter)
        self.rows: Counter[int] = Counter()
        for text, label in labelled:
            self.rows[label] += 1
            self.counts[label].update(features(text))
        self.vocabulary = set().union(*self.counts.values())

    def predict(self, text: str) -> int:
        return max(sorted(self.rows), key=lambda label: self._log_probability(text, label))

    def accuracy(self, labelled: Labelled) -> float:
        return sum(self.predict(text) == label for text, label in labelled) / len(labelled)

    def _log_probability(self, text: str, label: int) -> float:
        counts = self.counts[label]
        total = counts.total() + len(self.vocabulary)
        words = (word for word in features(text) if word in self.vocabulary)
        evidence = sum(math.log((counts[word] + 1) / total) for word in words)
        return math.log(self.rows[label]) + evidence


def features(text: str) -> Iterable[str]:
    """The words in small letters, and the pairs of neighbouring words."""
    words = re.findall(r"[\w']+", text.lower())
    return [*words, *(f"{left} {right}" for left, right in pairwise(words))]
