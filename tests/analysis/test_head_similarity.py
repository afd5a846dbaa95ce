"""How alike heads are: by hand, what must hold for all, and what is left out of long texts."""

import math
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from torch import Tensor

from explorer.analysis import head_similarity
from explorer.analysis.head_similarity import (
    divergence_matrix,
    js_divergence,
    pairwise_divergence,
    rows_compared,
    rows_of_heads,
    similarity_order,
)
from explorer.catalog import opened_model
from explorer.catalog.opened_model import Opened
from explorer.inference.forward_pass import run_text


def rows(n: int, queries: int, keys: int, seed: int) -> Tensor:
    scores = 3 * torch.randn(n, queries, keys, generator=torch.Generator().manual_seed(seed))
    return scores.softmax(-1)


@settings(deadline=None, max_examples=40)
@given(some.integers(2, 6), some.integers(1, 7), some.integers(1, 9), some.integers(0, 9999))
def test_what_holds_for_all_heads(n: int, queries: int, keys: int, seed: int) -> None:
    weights = rows(n, queries, keys, seed)
    found = divergence_matrix(list(pairwise_divergence(weights)))
    assert torch.equal(found, found.T)
    assert bool((found.diagonal() == 0).all())
    assert 0 <= float(found.min()) <= float(found.max()) <= 1
    same = torch.eye(keys)
    ends = js_divergence(same, torch.stack([same, same.roll(1, 1)])).tolist()
    assert ends == pytest.approx([0, float(keys > 1)])
    for at in range(n):
        slow = [_by_loop(weights[at], other) for other in weights]
        assert found[at].tolist() == pytest.approx(slow, abs=2e-5)


def _by_loop(one: Tensor, other: Tensor) -> float:
    total = 0.0
    for p, q in zip(one.double(), other.double(), strict=True):
        m = (p + q) / 2
        total += float((p * (p / m).log2()).nansum() + (q * (q / m).log2()).nansum()) / 2
    return total / len(one)


def test_heads_that_are_alike_stand_together() -> None:
    kinds = torch.eye(6)[None], torch.eye(6).roll(1, 1)[None], torch.full((1, 6, 6), 1 / 6)
    weights = torch.cat([kinds[at % 3] for at in range(9)])
    order = similarity_order(divergence_matrix(list(pairwise_divergence(weights))))
    assert sorted(order) == list(range(9))
    assert [len({at % 3 for at in order[i : i + 3]}) for i in (0, 3, 6)] == [1, 1, 1]
    assert similarity_order(torch.zeros(0, 0)) == []
    assert similarity_order(torch.zeros(1, 1)) == [0]


def test_what_is_no_number_stays_none() -> None:
    weights = rows(3, 4, 4, 1)
    weights[1, 0, 0] = math.nan
    found = divergence_matrix(list(pairwise_divergence(weights)))
    assert found.isnan().tolist() == [[False, True, False], [True] * 3, [False, True, False]]
    assert sorted(similarity_order(found)) == [0, 1, 2]


@pytest.fixture
def opened(small_models: Path) -> Opened:
    return opened_model.opened_from(small_models / "letters", "letters")


def test_of_a_long_text_some_rows_and_of_many_heads_some_layers_are_compared(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    forward, part = run_text(opened, "the cat and the hat"), "decoder.self_attn"
    keys = len(forward.target)
    assert rows_compared(forward, part) == tuple(range(keys))
    found = torch.cat(list(rows_of_heads(forward, part, range(keys))))
    assert torch.allclose(found, forward.all_weights(part).flatten(0, 1))
    monkeypatch.setattr(head_similarity, "CELLS_COMPARED", 8 * 8 // 2 * keys * 3)
    some = (0, round((keys - 1) / 2), keys - 1)
    assert rows_compared(forward, part) == some
    assert torch.equal(torch.cat(list(rows_of_heads(forward, part, some))), found[:, list(some)])
    monkeypatch.setattr(head_similarity, "HEADS_COMPARED", 12)
    assert head_similarity.layers_compared(9, 4) == (0, 4, 8)
    assert head_similarity.layers_compared(3, 4) == (0, 1, 2)


def test_rows_that_see_nothing_are_left_out(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    forward = run_text(opened, "the cat")
    n = len(forward.target)
    mask = torch.ones(n, n, dtype=torch.bool).tril()
    monkeypatch.setattr(type(forward), "mask", lambda self, part, layer=0: mask)
    mask[1] = False
    assert rows_compared(forward, "decoder.self_attn") == (0, *range(2, n))
    mask[:] = False
    assert rows_compared(forward, "decoder.self_attn") == ()
    none = next(rows_of_heads(forward, "decoder.self_attn", ()))
    assert bool(js_divergence(none[0], none).isnan().all())
