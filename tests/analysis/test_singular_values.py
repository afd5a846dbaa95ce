"""Singular values, and what noise would have instead."""

import math
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from torch import Tensor

from explorer.analysis import singular_values
from explorer.analysis.singular_values import (
    SingularValuesError,
    looks_random,
    random_singular_values,
    singular_values_of,
)

SHAPES = [(64, 64), (64, 256), (300, 40), (512, 512), (16, 900)]


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_a_diagonal_has_its_entries() -> None:
    found = singular_values_of(torch.diag(torch.tensor([1.0, -4.0, 2.0])))
    assert found.values.tolist() == pytest.approx([4, 2, 1])
    assert found.stable_rank == pytest.approx(21 / 16)
    assert [found.directions_for(share) for share in (0.5, 0.9, 1.0)] == [1, 2, 3]
    assert found.rms == pytest.approx(math.sqrt(21 / 9))
    nothing = singular_values_of(torch.zeros(4, 6))
    assert (nothing.stable_rank, nothing.directions_for(0.9), nothing.above_edge) == (0.0, 0, 0)


@settings(deadline=None, max_examples=30)
@given(some.integers(1, 30), some.integers(1, 30), some.integers(0, 99))
def test_both_methods_agree(rows: int, columns: int, seed: int) -> None:
    matrix = drawn(rows, columns, seed=seed)
    exact = torch.linalg.svdvals(matrix.double())
    assert torch.allclose(singular_values_of(matrix).values, exact)
    assert torch.allclose(singular_values._from_product(matrix), exact, atol=1e-6 * float(exact[0]))


def test_a_large_matrix_says_how_its_values_were_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(singular_values, "DECOMPOSED", 1000)
    shares: list[float] = []
    found = singular_values_of(drawn(40, 20), shares.append)
    assert shares[-1] == 1
    assert "eigenvalues of the matrix times its transpose" in found.method
    assert torch.allclose(found.values, torch.linalg.svdvals(drawn(40, 20).double()))
    monkeypatch.setattr(singular_values, "MULTIPLIED", 1000)
    with pytest.raises(SingularValuesError, match="40 × 20 is too large"):
        singular_values_of(drawn(40, 20))


def test_a_vector_and_what_is_not_finite_are_refused_in_a_sentence() -> None:
    broken = drawn(8, 8)
    broken[1, 2] = math.nan
    for tensor in (drawn(8), torch.empty(0, 3), broken):
        with pytest.raises(SingularValuesError):
            singular_values_of(tensor)


def test_noise_is_where_the_law_says() -> None:
    for shape in SHAPES:
        found = singular_values_of(0.02 * drawn(*shape))
        expected = random_singular_values(found.shape, found.rms)
        assert len(expected) == len(found.values)
        assert bool((expected[:-1] >= expected[1:]).all()), shape
        assert float((found.values - expected).abs().mean()) < 0.02 * found.edge, shape
        assert float(expected[0]) < found.edge, shape
        squares = float(expected.square().sum()), float(found.values.square().sum())
        assert squares[0] == pytest.approx(squares[1], rel=0.01), shape


def test_noise_of_any_kind_passes_and_one_planted_direction_does_not() -> None:
    """Uniform noise has the same edge."""
    for (rows, columns), seed in product(SHAPES, range(5)):
        matrix = drawn(rows, columns, seed=seed)
        flat = torch.rand(rows, columns, generator=torch.Generator().manual_seed(seed)) - 0.5
        assert looks_random(0.02 * matrix), (rows, columns, seed)
        assert looks_random(flat), (rows, columns, seed)
        planted = drawn(rows, 1, seed=seed + 1) @ drawn(1, columns, seed=seed + 2)
        strength = 2.5 * (math.sqrt(rows) + math.sqrt(columns)) / math.sqrt(rows * columns)
        assert not looks_random(matrix + strength * planted), (rows, columns, seed)


def test_what_cannot_be_judged_is_not_called_noise() -> None:
    assert not looks_random(drawn(2, 64))
    assert not looks_random(torch.zeros(16, 16))
    assert not looks_random(torch.full((16, 16), math.nan))
