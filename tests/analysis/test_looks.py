"""Ways to look at attention: what must hold for each, counted by hand and over examples."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from torch import Tensor

from explorer.analysis.looks import percent
from explorer.analysis.reweighing import by_value_norm, cut_mass, hide, merge

SIZES = settings(max_examples=60)


def attention(rows: int, columns: int, seed: int) -> Tensor:
    scores = 4 * torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))
    return scores.softmax(-1)


@SIZES
@given(some.integers(1, 9), some.integers(2, 12), some.integers(0, 10_000), some.data())
def test_hiding_keeps_every_row_a_distribution(
    rows: int, columns: int, seed: int, data: some.DataObject
) -> None:
    keys = data.draw(some.sets(some.integers(0, columns - 1), max_size=columns - 1))
    weights = attention(rows, columns, seed)
    left, removed = hide(weights, sorted(keys))
    assert (left[:, list(keys)] == 0).all()
    assert torch.allclose(left.sum(-1), torch.ones(rows), atol=1e-5)
    assert torch.allclose(removed, weights[:, list(keys)].sum(-1))
    kept = [at for at in range(columns) if at not in keys]
    again = weights[:, kept] / weights[:, kept].sum(-1, keepdim=True)
    assert torch.allclose(left[:, kept], again, atol=1e-5)


def test_a_row_that_looked_at_nothing_else_is_empty() -> None:
    left, removed = hide(torch.tensor([[1.0, 0.0], [0.25, 0.75]]), [0])
    assert left.tolist() == [[0, 0], [0, 1]]
    assert removed.tolist() == [1, 0.25]
    assert hide(torch.zeros(1, 3), [1])[0].tolist() == [[0, 0, 0]]
    assert hide(torch.full((1, 2), 0.5), [0, 1])[0].tolist() == [[0, 0]]


def test_hiding_nothing_gives_back_the_original() -> None:
    weights = attention(4, 4, 0)
    left, removed = hide(weights, [])
    assert torch.equal(left, weights)
    assert not removed.any()


@SIZES
@given(some.integers(1, 9), some.integers(1, 12), some.integers(0, 10_000), some.integers(10, 100))
def test_the_cut_keeps_the_fewest_keys_that_reach_the_share(
    rows: int, columns: int, seed: int, mass: int
) -> None:
    weights, share = attention(rows, columns, seed), mass / 100
    kept = cut_mass(weights, share)
    for before, after in zip(weights, kept, strict=True):
        held = after[after > 0]
        assert float(held.sum()) >= share - 1e-5
        assert float(held.sum() - held.min()) < share + 1e-5 or mass == 100
        assert torch.equal(held, before[after > 0])
        assert float(held.min()) >= float(before[after == 0].max()) if (after == 0).any() else True


def test_of_equal_values_the_earlier_is_kept() -> None:
    assert cut_mass(torch.tensor([[0.25, 0.25, 0.25, 0.25]]), 0.5).tolist() == [[0.25, 0.25, 0, 0]]


def test_the_cut_of_an_empty_row_is_empty_and_no_number_stays() -> None:
    assert cut_mass(torch.zeros(1, 3), 0.7).tolist() == [[0, 0, 0]]
    kept = cut_mass(torch.tensor([[float("nan"), 0.1, 0.9]]), 0.7)
    assert kept.isnan().tolist() == [[True, False, False]]
    assert kept[0, 1:].tolist() == pytest.approx([0, 0.9])


def test_merging_sums_over_keys_and_averages_over_queries() -> None:
    weights = torch.tensor([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0], [0.2, 0.2, 0.6]])
    merged = merge(weights, [(0,), (1, 2)], [(0, 1), (2,)])
    assert merged.flatten().tolist() == pytest.approx([0.75, 0.25, 0.7, 0.3])
    swapped = weights.mT  # what the wrong way around would give
    assert not torch.allclose(merged, merge(swapped, [(0, 1), (2,)], [(0,), (1, 2)]).mT)


def test_a_query_that_sees_nothing_does_not_thin_out_its_word() -> None:
    weights = torch.tensor([[0.0, 0.0], [0.5, 0.5]])
    assert merge(weights, [(0, 1)], [(0,), (1,)]).tolist() == [[0.5, 0.5]]
    assert merge(torch.zeros(2, 2), [(0, 1)], [(0, 1)]).tolist() == [[0]]


@SIZES
@given(some.integers(1, 8), some.integers(0, 1000), some.data())
def test_merged_rows_still_add_up_to_one(tokens: int, seed: int, data: some.DataObject) -> None:
    ends = data.draw(some.lists(some.booleans(), min_size=tokens, max_size=tokens))
    groups: list[list[int]] = [[]]
    for at, ends_here in enumerate(ends):
        groups[-1].append(at)
        if ends_here and at + 1 < tokens:
            groups.append([])
    words = [tuple(group) for group in groups]
    heads = torch.stack([attention(tokens, tokens, seed), attention(tokens, tokens, seed + 1)])
    assert torch.allclose(merge(heads, words, words).sum(-1), torch.ones(2, len(words)), atol=1e-5)


def test_value_norms_are_those_of_what_is_brought() -> None:
    weights, v, o_slice = attention(3, 4, 0), torch.randn(4, 2), torch.randn(6, 2)
    found = by_value_norm(weights, v, o_slice)
    for query in range(3):
        for key in range(4):
            brought = weights[query, key] * (o_slice @ v[key])
            assert float(found[query, key]) == pytest.approx(float(brought.norm()), rel=1e-4)
    assert torch.allclose(by_value_norm(weights, v), weights * v.norm(dim=1))


def test_a_share_is_said_in_few_digits() -> None:
    assert [percent(share) for share in (0.413, 0, 1, 0.0042)] == ["41 %", "0 %", "100 %", "0.42 %"]
    assert percent(float("nan")) == "an unknown share"
