"""The formulas of positions give what the model has, and see a mistake in what it has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from explorer import library, reading
from explorer.analysis.walk_again import difference
from explorer.analysis.walk_positions import buckets, frequencies, sinusoids, slope
from explorer.text import word_tokenizer
from explorer.text.special import CLASSIFIER
from models import TransformerConfig, positional
from models.positional import AlibiPositions, RelativePositions, RotaryPositions
from models.rope_scaling import RopeScaling
from tests.analysis.test_walk import EXACT, walked
from tests.grids import grid
from tests.shelf import WORDS, put

PLACES = torch.arange(0, 5_000, 7)


@grid("width, pairs", [1, 7, 16, 512], ["adjacent", "halves"])
def test_sinusoids(width: int, pairs: str) -> None:
    mine = sinusoids(PLACES, width, pairs == "halves")
    theirs = positional.sinusoids(PLACES, width, pairs)
    torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-11)


@grid(
    "width, theta, kind",
    [2, 24, 128],
    [10_000.0, 500_000.0, 1e6],
    [None, "linear", "llama3", "yarn"],
)
def test_frequencies(width: int, theta: float, kind: str | None) -> None:
    scaling = None if kind is None else RopeScaling(kind=kind, factor=4.0)
    config = TransformerConfig(
        positions="rotary", d_head=width, rope_theta=theta, rope_scaling=scaling
    )
    assert torch.equal(
        frequencies(config), RotaryPositions(width, theta, "halves", scaling).frequencies()
    )


def test_slopes(subtests: pytest.Subtests) -> None:
    for heads in range(1, 40):
        with subtests.test(heads=heads):
            mine = [slope(head, heads) for head in range(heads)]
            assert mine == pytest.approx(AlibiPositions(heads).slopes().tolist())


@pytest.mark.parametrize(("count", "most"), [(4, 3), (8, 128), (9, 20), (32, 128), (32, 1_000)])
@pytest.mark.parametrize("causal", [True, False])
def test_buckets(count: int, most: int, causal: bool) -> None:
    config = TransformerConfig(positions="relative", n_buckets=count, max_distance=most)
    offsets = torch.arange(-2_000, 2_001)
    theirs = RelativePositions(2, count, most, causal).buckets(offsets)
    assert torch.equal(buckets(offsets, config, causal), theirs)


def larger(gives: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *inputs: gives(*inputs) * 1.1


MISTAKES: dict[str, tuple[Any, str, Callable[..., Any], str]] = {
    "sinusoidal": (positional, "sinusoids", larger, "encoder.pos_embed"),
    "rotary": (RotaryPositions, "frequencies", larger, "encoder.0.self_attn.q"),
    "alibi": (AlibiPositions, "slopes", larger, "encoder.0.self_attn.bias"),
    "relative": (
        RelativePositions,
        "buckets",
        lambda gives: lambda of, offsets: gives(of, -offsets),
        "encoder.0.self_attn.bias",
    ),
}


@grid("scheme, planted", MISTAKES, [False, True])
def test_a_mistake_in_the_models_positions_is_seen(
    scheme: str, planted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path))
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path / "runs"))
    whose, name, mistaken, stage = MISTAKES[scheme]
    if planted:
        monkeypatch.setattr(whose, name, mistaken(getattr(whose, name)))
    text = word_tokenizer(WORDS, CLASSIFIER)
    put(tmp_path, f"{scheme}-{planted}", text, "the cat", kind="encoder", positions=scheme)
    opened = library.open_model(f"{scheme}-{planted}")
    walk = walked(reading.fresh_batch(opened, ("the black cat sleeps le chat",))[0])
    found = difference(walk, walk.stages[stage])
    assert found > 1e-3 if planted else found <= EXACT
