"""A pass that keeps every attention weight beside one that nobody watches."""

from __future__ import annotations

import torch

from models import Transformer, TransformerConfig, trace
from models.transformer import evaluating
from tests.benchmarks.figure import milliseconds, report
from tests.benchmarks.ratio import ratio

BAR = 1.1
TOKENS = 128
CONFIG = TransformerConfig(
    vocab_size=1000, d_model=768, n_layers=12, n_heads=12, d_ff=3072, activation="gelu"
)


def test_forward_with_all_weights() -> None:
    torch.set_num_threads(1)
    model = Transformer(CONFIG).eval()
    ids = torch.randint(1000, (1, TOKENS), generator=torch.Generator().manual_seed(0))

    def watched() -> None:
        seen = trace(model, ids, sites=("*.weights",))
        assert len(seen.sites) == 12
        assert seen.weights("decoder.11.self_attn").shape == (1, 12, TOKENS, TOKENS)

    def unwatched() -> None:
        with evaluating(model):
            model(ids)

    measured = ratio(watched, unwatched, rounds=15)
    report(
        "forward with all attention weights, 12 layers, 12 heads, d 768, 128 tokens",
        f"{milliseconds(measured.first)}, {measured}",
        f"{milliseconds(measured.second)} of the same core unwatched",
        f"{BAR} ×",
    )
    assert measured.times <= BAR
