"""Switching off every head of a published size at once, beside one pass for each."""

from __future__ import annotations

import torch

from explorer.analysis.ablation import every_head
from models import trace
from models.interventions import Scale
from models.trace import CHEAP_SITES
from tests.benchmarks import published
from tests.benchmarks.figure import milliseconds, report
from tests.benchmarks.ratio import ratio

TOKENS = 32
BAR = 1 / 4
EQUAL = 1e-5
PART = "decoder.self_attn"
LAST = slice(-1, None)


def test_every_head_at_once() -> None:
    """The pass to beat is cheap already: fused attention, logits at the last token only."""
    model, ids = published.ours(), published.ids(TOKENS)
    heads = published.LAYERS * published.HEADS

    def one_by_one(layer: int = 5, head: int = 3) -> torch.Tensor:
        off = Scale(f"decoder.{layer}.self_attn.head_out", head=head)
        return trace(model, ids, sites=("logits",), read_at=LAST, edits=[off]).output[0, 0]

    def at_once() -> torch.Tensor:
        passed = trace(model, ids, sites=CHEAP_SITES, read_at=LAST)
        found = every_head(model, passed, (ids,), PART, published.LAYERS, TOKENS - 1)
        return torch.stack(list(found))

    seen = at_once()
    off = [
        float((seen[layer, head] - one_by_one(layer, head)).abs().max())
        for layer in range(published.LAYERS)
        for head in (0, 5, 11)
    ]
    measured = ratio(at_once, one_by_one, rounds=5)
    share = measured.times / heads
    report(
        f"{heads} heads ablated at once, {published.TITLE}, {TOKENS} tokens",
        f"{milliseconds(measured.first)}, {share:.2f} × of one pass per head, "
        f"equal to {max(off):.0e}",
        f"{milliseconds(measured.second)} for each of {heads} passes with one edit",
        f"{BAR} ×, {EQUAL:.0e}",
    )
    assert max(off) <= EQUAL
    assert share <= BAR
