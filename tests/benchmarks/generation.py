"""Generation with cached keys and values, beside reading everything again and beside the reference.

A cached token reads all weights from memory once, an uncached one computes with all tokens
so far: how many times as fast follows from the length of the prompt and from how fast the
machine's memory is beside its arithmetic. So a short prompt has no goal.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from models import Transformer, TransformerConfig
from tests.benchmarks import published
from tests.benchmarks.ratio import ratio
from tests.benchmarks.rows import Row, compared

GOAL, REFERENCE_GOAL = 3.0, 1.0
TOKENS, SHORT = 64, 16
CONFIG = TransformerConfig(vocab_size=1000, d_model=512, n_layers=12, n_heads=8, d_ff=2048)


def with_a_cache() -> Iterator[Row]:
    model = Transformer(CONFIG).eval()
    for length in (TOKENS, SHORT):
        prompt = torch.randint(1000, (1, length), generator=torch.Generator().manual_seed(0))

        def cached(prompt: torch.Tensor = prompt) -> torch.Tensor:
            return model.generate(prompt, max_length=TOKENS, greedy=True, use_cache=True)

        def uncached(prompt: torch.Tensor = prompt) -> torch.Tensor:
            return model.generate(prompt, max_length=TOKENS, greedy=True, use_cache=False)

        assert torch.equal(cached(), uncached())
        measured = ratio(uncached, cached, rounds=1)
        yield Row(
            f"generation of {TOKENS} tokens, 12 layers, d 512, prompt of {length}, cached",
            f"{measured.second:.2f} s, {measured.times:.1f} times as fast",
            f"{measured.first:.2f} s uncached",
            1 / measured.times,
            f"{GOAL:g} times as fast" if length == TOKENS else "none: reported",
            measured.times >= GOAL if length == TOKENS else None,
        )


def beside_the_reference() -> Iterator[Row]:
    reference, model, prompt = published.reference(), published.ours(), published.ids(16)
    everything, exactly = torch.ones_like(prompt), {"max_new_tokens": 64, "min_new_tokens": 64}

    def theirs() -> torch.Tensor:
        return reference.generate(
            prompt, attention_mask=everything, do_sample=False, pad_token_id=0, **exactly
        )

    def ours() -> torch.Tensor:
        return model.generate(prompt, max_length=64, temperature=0)

    assert torch.equal(ours(), theirs())
    what = f"64 tokens generated with the cache, {published.TITLE}"
    yield compared(what, ratio(ours, theirs), "of transformers generate", REFERENCE_GOAL)
