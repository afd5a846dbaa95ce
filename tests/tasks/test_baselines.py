"""The baselines, worked out by hand on a few tokens."""

import math

import pytest
import torch

from explorer.tasks.baselines import NaiveBayes, bigram_nats, features


def test_a_bigram_model_of_a_strict_alternation_is_sure() -> None:
    ids = torch.tensor([0, 1] * 5_000)
    assert bigram_nats(ids, ids[:100], vocab_size=2) < 0.01


def test_a_bigram_model_of_noise_knows_no_more_than_the_frequencies() -> None:
    ids = torch.randint(8, (20_000,), generator=torch.Generator().manual_seed(0))
    assert bigram_nats(ids[:18_000], ids[18_000:], 8) == pytest.approx(math.log(8), abs=0.01)


def test_tokens_never_seen_cost_much_and_not_everything() -> None:
    ids = torch.tensor([0, 1] * 500)
    assert 5 < bigram_nats(ids, torch.tensor([0, 2, 3, 2]), vocab_size=4) < 20


def test_naive_bayes_uses_words_and_pairs() -> None:
    assert list(features("Not good, no")) == ["not", "good", "no", "not good", "good no"]
    bayes = NaiveBayes([("good food", 1), ("not good", 0), ("good day", 1), ("not nice", 0)])
    assert bayes.predict("a good day") == 1
    assert bayes.predict("not good") == 0
    assert bayes.accuracy([("good food", 1), ("not good", 1)]) == 0.5
