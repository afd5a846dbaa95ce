"""Head statistics: counted by hand, and what must hold for every head."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from torch import Tensor

from explorer import library
from explorer.analysis import heads
from explorer.analysis.heads import STATISTICS, joined, layers, of_heads
from explorer.library import Opened
from explorer.reading import read
from models.masking import causal_mask
from tests.shelf import shelf

ALL = torch.ones(1, 1, dtype=torch.bool)
PLAIN = torch.zeros(64, dtype=torch.bool)


def causal(tokens: int) -> Tensor:
    return causal_mask(tokens)[0, 0]


def numbers(weights: Tensor, visible: Tensor = ALL, *, same_text: bool = True) -> dict[str, float]:
    """The statistics of a single head (q, k)."""
    special = PLAIN[: weights.shape[1]]
    found = of_heads(weights[None], visible, special, same_text=same_text)
    return {name: float(value) for name, value in found.items()}


def test_a_head_counted_by_hand() -> None:
    weights = torch.tensor([[[1.0, 0, 0], [0.5, 0.5, 0], [0.25, 0.25, 0.5]]])
    special = torch.tensor([True, False, False])
    found = {
        name: float(value)
        for name, value in of_heads(weights, causal(3), special, same_text=True).items()
    }
    log2 = math.log(2)
    assert found["entropy"] == pytest.approx((0 + log2 + 1.5 * log2) / 3)
    assert found["spread"] == pytest.approx((1 + 1.5 * log2 / math.log(3)) / 2)
    assert found["largest"] == pytest.approx((1 + 0.5 + 0.5) / 3)
    assert found["distance"] == pytest.approx((0 + 0.5 + 0.25 * 2 + 0.25) / 3)
    assert found["first"] == found["special"] == pytest.approx((1 + 0.5 + 0.25) / 3)
    assert found["itself"] == pytest.approx((1 + 0.5 + 0.5) / 3)
    assert found["previous"] == pytest.approx((0.5 + 0.25) / 2)


@pytest.mark.parametrize("tokens", [2, 5, 48])
def test_uniform_looks_have_all_the_entropy(tokens: int) -> None:
    everywhere = numbers(torch.full((tokens, tokens), 1 / tokens))
    assert everywhere["spread"] == pytest.approx(1)
    assert everywhere["entropy"] == pytest.approx(math.log(tokens))
    back = causal(tokens).float()
    looking_back = numbers(back / back.sum(-1, keepdim=True), causal(tokens))
    assert looking_back["spread"] == pytest.approx(1)


@pytest.mark.parametrize("tokens", [2, 5, 48])
def test_a_head_that_looks_at_itself(tokens: int) -> None:
    found = numbers(torch.eye(tokens))
    assert (found["entropy"], found["spread"], found["distance"]) == (0, 0, 0)
    assert (found["itself"], found["largest"], found["previous"]) == (1, 1, 0)
    assert found["first"] == pytest.approx(1 / tokens)


def test_a_head_that_looks_at_the_token_before() -> None:
    before = torch.eye(6).roll(-1, dims=1)
    before[0] = torch.eye(6)[0]
    found = numbers(before, causal(6))
    assert found["previous"] == 1
    assert found["distance"] == pytest.approx(5 / 6)


@settings(deadline=None, max_examples=60)
@given(some.integers(2, 12), some.integers(0, 10_000), some.booleans())
def test_what_holds_for_every_head(tokens: int, seed: int, is_causal: bool) -> None:
    scores = 4 * torch.randn(3, tokens, tokens, generator=torch.Generator().manual_seed(seed))
    visible = causal(tokens) if is_causal else torch.ones(tokens, tokens, dtype=torch.bool)
    weights = scores.masked_fill(~visible, -math.inf).softmax(-1)
    found = of_heads(weights, visible, torch.ones(tokens, dtype=torch.bool), same_text=True)
    for name, statistic in STATISTICS.items():
        assert found[name].shape == (3,)
        assert float(found[name].min()) >= 0
        assert statistic.top is None or float(found[name].max()) <= statistic.top + 1e-6
    assert torch.allclose(found["special"], torch.ones(3, dtype=torch.float64), atol=1e-6)
    assert bool((found["distance"] <= tokens - 1).all())
    assert bool((found["entropy"] <= math.log(tokens) + 1e-6).all())


def test_rows_that_see_nothing_are_left_out() -> None:
    weights = torch.tensor([[0.0, 0.0], [0.5, 0.5]])
    visible = torch.tensor([[False, False], [True, True]])
    found = numbers(weights, visible)
    assert (found["spread"], found["first"], found["itself"]) == pytest.approx((1, 0.5, 0.5))
    nothing = numbers(torch.zeros(2, 2), torch.zeros(2, 2, dtype=torch.bool))
    assert all(math.isnan(value) for value in nothing.values())


def test_a_single_key_leaves_no_choice() -> None:
    found = numbers(torch.ones(1, 1))
    assert math.isnan(found["spread"])
    assert math.isnan(found["previous"])
    assert found["entropy"] == 0


def test_between_two_texts_there_is_no_distance() -> None:
    found = numbers(torch.full((3, 4), 0.25), same_text=False)
    missing = {name for name, value in found.items() if math.isnan(value)}
    assert missing == {name for name, each in STATISTICS.items() if each.same_text}


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Opened:
    folder = shelf(tmp_path_factory.mktemp("checkpoints"))
    return library.opened_from(folder / "translation", "translation")


def test_every_kind_of_attention_is_measured_layer_by_layer(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = read(opened, "the black cat sleeps")
    for part in reading.parts:
        whole = joined(list(layers(reading, part.name)))
        assert whole.values["spread"].shape == (part.layers, part.heads)
        assert (whole.rows, whole.blind) == (len(reading.rows(part.name)), 0)
        with monkeypatch.context() as patch:
            patch.setattr(heads, "WEIGHTS_HELD", 1)
            alone = joined(list(layers(reading, part.name)))
        for name in STATISTICS:
            assert torch.allclose(whole.values[name], alone.values[name], equal_nan=True)


def test_special_tokens_are_those_of_the_columns(opened: Opened) -> None:
    reading = read(opened, "the black cat sleeps")
    (found,) = layers(reading, "encoder.self_attn")
    special = [token.special for token in reading.source]
    assert any(special)
    weights = reading.all_weights("encoder.self_attn")[0]
    by_hand = weights[..., torch.tensor(special)].sum(-1).mean(-1)
    assert torch.allclose(found.values["special"][0].float(), by_hand)


def test_it_is_said_how_many_rows_see_nothing(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = read(opened, "the black cat sleeps")
    rows = len(reading.rows("encoder.self_attn"))
    mask = torch.ones(rows, rows, dtype=torch.bool)
    mask[0] = False
    monkeypatch.setattr(type(reading), "mask", lambda self, part, layer=0: mask)
    (found,) = layers(reading, "encoder.self_attn")
    assert (found.rows, found.blind) == (rows, 1)
