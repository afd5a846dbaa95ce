"""Writing with remembered keys and values beside reading everything again each time.

A cached token reads all weights from memory once, an uncached one computes with all tokens
so far: how many times as fast follows from the length of the prompt and from how fast the
machine's memory is beside its arithmetic. A prompt as long as what is written is asserted;
a short one is reported.
"""

from __future__ import annotations

import torch

from models import Transformer, TransformerConfig
from tests.benchmarks.figure import report
from tests.benchmarks.ratio import ratio

BAR = 3.0
TOKENS = 64
SHORT = 16
CONFIG = TransformerConfig(vocab_size=1000, d_model=512, n_layers=12, n_heads=8, d_ff=2048)


def test_generation_with_a_cache() -> None:
    torch.set_num_threads(1)
    model = Transformer(CONFIG).eval()
    assert times_as_fast(model, prompt_length=TOKENS) >= BAR


def test_generation_after_a_short_prompt() -> None:
    """Reported: on a machine with slow memory beside fast arithmetic it comes near the bar."""
    torch.set_num_threads(1)
    assert times_as_fast(Transformer(CONFIG).eval(), prompt_length=SHORT) > 1


def times_as_fast(model: Transformer, prompt_length: int) -> float:
    """Uncached ÷ cached, printed; both write the same."""
    prompt = torch.randint(1000, (1, prompt_length), generator=torch.Generator().manual_seed(0))

    def write(use_cache: bool) -> torch.Tensor:
        return model.generate(prompt, max_length=TOKENS, greedy=True, use_cache=use_cache)

    assert torch.equal(write(True), write(False))
    measured = ratio(lambda: write(False), lambda: write(True), rounds=1)
    report(
        f"generation of {TOKENS} tokens, 12 layers, d 512, prompt of {prompt_length}, cached",
        f"{measured.second:.2f} s, {measured.times:.1f} times as fast",
        f"{measured.first:.2f} s uncached",
        f"{BAR:g} times as fast" if prompt_length == TOKENS else "none: reported",
    )
    return measured.times
