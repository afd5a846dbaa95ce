"""Writing with remembered keys and values beside reading everything again each time."""

from __future__ import annotations

import torch

from models import Transformer, TransformerConfig
from tests.benchmarks.figure import report
from tests.benchmarks.ratio import ratio

BAR = 3.0
TOKENS = 64
CONFIG = TransformerConfig(vocab_size=1000, d_model=512, n_layers=12, n_heads=8, d_ff=2048)


def test_generation_with_a_cache() -> None:
    torch.set_num_threads(1)
    model = Transformer(CONFIG).eval()
    prompt = torch.randint(1000, (1, 16), generator=torch.Generator().manual_seed(0))

    def write(use_cache: bool) -> torch.Tensor:
        return model.generate(prompt, max_length=TOKENS, greedy=True, use_cache=use_cache)

    assert torch.equal(write(True), write(False))
    measured = ratio(lambda: write(False), lambda: write(True), rounds=4)
    report(
        f"generation of {TOKENS} tokens, 12 layers, d 512, prompt of 16, cached",
        f"{measured.second:.2f} s, {measured.times:.1f} times as fast",
        f"{measured.first:.2f} s uncached",
        f"{BAR:g} times as fast",
    )
    assert measured.times >= BAR
