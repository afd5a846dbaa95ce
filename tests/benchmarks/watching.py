"""A pass that keeps every attention weight beside one that nobody watches."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from models import Transformer, TransformerConfig, trace
from models.transformer import evaluating
from tests.benchmarks.ratio import ratio
from tests.benchmarks.rows import Row, compared

GOAL = 1.1
TOKENS = 128
CONFIG = TransformerConfig(
    vocab_size=1000, d_model=768, n_layers=12, n_heads=12, d_ff=3072, activation="gelu"
)


def forward() -> Iterator[Row]:
    model = Transformer(CONFIG).eval()
    ids = torch.randint(1000, (1, TOKENS), generator=torch.Generator().manual_seed(0))

    def watched() -> None:
        assert len(trace(model, ids, sites=("*.weights",)).sites) == 12

    def unwatched() -> None:
        with evaluating(model):
            model(ids)

    yield compared(
        "forward with all attention weights, 12 layers, 12 heads, d 768, 128 tokens",
        ratio(watched, unwatched, rounds=15),
        "of the same core unwatched",
        GOAL,
    )
