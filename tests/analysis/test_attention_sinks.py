"""Attention sinks, recomputed from whole matrices, and experiments from passes by hand."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from explorer.analysis.attention_sinks import (
    EXPERIMENTS,
    Sinks,
    sink_experiment,
    sink_weights,
    sinks_by_layer,
)
from explorer.analysis.residual_writes import value_writes
from explorer.catalog.attention_parts import site
from explorer.inference.forward_pass import ForwardPass, run_text
from models.trace import trace
from tests.analysis.conftest import TEXT, inputs_of, opened_of
from tests.closeness import assert_close_to


def test_every_number_is_that_of_the_whole_matrices(found: ForwardPass) -> None:
    """Rows by their loops, norms through the whole W_O, singular values from the Gram matrix."""
    for part in (part for part in found.parts if part.name.endswith("self_attn")):
        sinks = Sinks(*torch.stack([*sinks_by_layer(found, part.name)], 1))
        assert_close_to(sink_weights(found, part.name), sinks.weight)
        for layer in range(part.layers):
            seen = [row.nonzero()[:, 0].tolist() for row in found.mask(part.name, layer)]
            rows = [at for at, keys in enumerate(seen) if keys[0] == 0 and len(keys) > 1]
            if not rows:  # an answer of one token
                assert bool(sinks.weight.isnan().all())
                continue
            others = sorted({key for at in rows for key in seen[at]} - {0})
            for head in range(part.heads):
                weights = found.weights(part.name, layer, head).double()
                values = found.trace[f"{site(part.name, layer)}.v"][0, found.config.kv_head(head)]
                writes = value_writes(found, part.name, layer, head).detach()
                written = weights[rows] @ writes
                energy = torch.linalg.eigvalsh(written @ written.mT).clamp(min=0)
                shares = (energy.sqrt() / energy.sqrt().sum()).tolist()
                expected = [
                    sum(float(weights[at, 0]) for at in rows) / len(rows),
                    sum(1 / len(seen[at]) for at in rows) / len(rows),
                    *(float(v[0].norm() / v[others].norm(dim=1).mean()) for v in (values, writes)),
                    float(energy.max() / energy.sum()),
                    math.exp(-sum(p * math.log(p) for p in shares if p > 0)),
                ]
                numbers = torch.stack([*sinks])[:, layer, head]
                assert_close_to(numbers, torch.tensor(expected).double(), 1e-5)


@pytest.mark.parametrize(
    ("weight", "write", "first", "verdict"),
    [
        (0.29, 0.5, 1.0, "no sink"),
        (0.35, 0.5, 1.0, "no sink"),  # as much as uniform attention gives
        (0.6, 0.5, 0.5, "a sink that does nothing"),
        (0.6, 0.6, 0.95, "a sink that broadcasts"),
        (0.6, 0.6, 0.85, "a sink that does neither"),
        (math.nan, 0.5, 1.0, "no value that can be measured"),
        (0.6, math.nan, 1.0, "no value that can be measured"),
    ],
)
def test_the_verdict_of_numbers(weight: float, write: float, first: float, verdict: str) -> None:
    numbers = (torch.tensor([[number]]) for number in (weight, 0.35, 1.0, write, first, 1.0))
    assert Sinks(*numbers).verdict(0, 0) == verdict


@dataclass
class Change:
    """An edit of the core by any function."""

    site: str
    change: Callable[[Tensor], Tensor]

    def __call__(self, value: Tensor) -> Tensor:
        return self.change(value)


@pytest.mark.parametrize("kind", ["decoder", "grouped", "capped", "windows", "both"])
def test_the_experiments_are_passes_by_hand(kind: str, tmp_path: Path) -> None:
    opened = opened_of(tmp_path, kind)
    forward = run_text(opened, TEXT)
    *source, target = inputs_of(forward)
    predicted = [token.id for token in forward.output_tokens] or target[0, 1:].tolist()

    def loss(target: Tensor, *edits: Change, removed: int = 0) -> float:
        logits = trace(opened.model, *source, target, edits=edits).output[0, 1 - removed :]
        some = predicted[1:]
        return float(F.cross_entropy(logits[: len(some)], torch.tensor(some)))

    def hidden(mask: Tensor) -> Tensor:
        cut = mask & (torch.arange(mask.shape[-1]) > 0)
        return torch.where(cut.any(-1, keepdim=True), cut, mask)

    every = Change("decoder.*.self_attn.v", lambda v: v * (torch.arange(v.shape[2]) > 0)[:, None])
    other = torch.cat([target[:, :1] % 12 + 1, target[:, 1:]], 1)
    expected = (
        loss(target[:, 1:], removed=1),
        loss(other),
        loss(target, Change("decoder.*.self_attn.mask", hidden)),
        loss(target, every),
    )
    for name, after in zip(EXPERIMENTS, expected, strict=True):
        effect = sink_experiment(opened, forward, name, "decoder.self_attn", int(other[0, 0]))
        assert effect.before == pytest.approx(loss(target), rel=1e-6)
        assert effect.after == pytest.approx(after, rel=1e-6), name


@pytest.mark.parametrize("kind", ["masked", "mean"])
def test_without_a_next_token_the_output_is_compared(kind: str, tmp_path: Path) -> None:
    """The first token removed: KL over the positions that stay, or of the classes."""
    opened = opened_of(tmp_path, kind)
    forward = run_text(opened, TEXT)
    (ids,) = inputs_of(forward)
    effect = sink_experiment(opened, forward, "removed", "encoder.self_attn", 5)
    before, after = (opened.model(some)[0] for some in (ids, ids[:, 1:]))
    if kind == "masked":
        before = before[1:]
    logs = [logits.detach().log_softmax(-1) for logits in (before, after)]
    expected = F.kl_div(logs[1], logs[0], log_target=True, reduction="none").sum(-1).mean()
    assert effect.before is None
    assert effect.after == pytest.approx(float(expected), rel=1e-6)
