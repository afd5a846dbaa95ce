"""What each stage cut is counted by its own rule, not by what became too small to be a number."""

from __future__ import annotations

import pytest
import torch

from explorer.analysis.decoding import stages
from explorer.bench.stage_columns import cut_in_words
from models.generation import Sampling

LOGITS = torch.arange(1_000.0)
"""Each token is e times likelier than the one before it."""


def test_what_is_cut_is_told_from_what_is_too_unlikely(subtests: pytest.Subtests) -> None:
    for sampling, said in [
        (Sampling(), "Nothing is cut: 104 tokens can be drawn and 896 are too unlikely."),
        (Sampling(0.005), "Nothing is cut: 1 token can be drawn and 999 are too unlikely."),
        (Sampling(0.005, top_k=50), "top-k cuts 950 tokens with 0: 1 token can be drawn and 49"),
        (Sampling(top_k=50), "top-k cuts 950 tokens with 0: 50 tokens can be drawn."),
        (Sampling(0.005, top_k=2), "top-k cuts 998 tokens with 0: 1 token can be drawn and 1 is"),
        (Sampling(top_k=5_000), "top-k cuts 0 tokens with 0: 104 tokens can be drawn and 896"),
        (Sampling(0.005, 50, 0.9), "top-p cuts 49 tokens with 0: 1 token can be drawn."),
        (Sampling(top_p=0.9), "top-p cuts 997 tokens with 0.0498: 3 tokens can be drawn."),
    ]:
        with subtests.test(sampling=sampling):
            assert said in cut_in_words(stages(LOGITS, sampling), sampling)


def test_a_token_that_may_not_be_written_is_not_counted() -> None:
    logits = LOGITS[:10].clone()
    logits[3] = -torch.inf
    assert "Of 9 tokens that may be written top-k cuts 4" in cut_in_words(
        stages(logits, Sampling(top_k=5)), Sampling(top_k=5)
    )
