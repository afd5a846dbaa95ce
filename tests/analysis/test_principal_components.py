"""Principal components against torch's own singular values; neighbours by hand."""

from __future__ import annotations

import pytest
import torch

from explorer.analysis import embedding_pca
from explorer.analysis.embedding_pca import components, embedding_space, neighbours


def table(rows: int = 60, width: int = 8) -> torch.Tensor:
    noise = torch.randn(rows, width, generator=torch.Generator().manual_seed(1))
    return noise * torch.linspace(3, 0.1, width) + 1


@pytest.mark.parametrize("size", [(60, 8), (8, 60)], ids=["tall", "wide"])
def test_components_are_those_of_the_singular_value_decomposition(size: tuple[int, int]) -> None:
    values = table(*size).double()
    mean, axes, shares = components(values)
    centred = values - values.mean(0)
    _, sizes, directions = torch.linalg.svd(centred, full_matrices=False)
    assert torch.allclose(mean, values.mean(0))
    assert torch.allclose((axes.T @ directions[:3].T).abs(), torch.eye(3).double(), atol=1e-9)
    assert shares == pytest.approx((sizes.square() / sizes.square().sum())[:3].tolist())
    assert (axes.gather(0, axes.abs().argmax(0, keepdim=True)) > 0).all(), "one sign every time"


def test_neighbours_are_the_nearest_by_cosine_and_a_zero_has_none() -> None:
    values = torch.tensor([[1.0, 0.0], [2.0, 0.1], [0.0, 1.0], [-1.0, 0.0], [0.0, 0.0]])
    first, zero = neighbours(values, [0, 4], 2)
    assert [token for token, _ in first] == [1, 2]
    assert first[0][1] == pytest.approx(2 / (4.01**0.5))
    assert zero == ()


def test_the_text_and_its_neighbours_are_always_drawn() -> None:
    values = table()
    found = embedding_space(values, [59, 7, 59], most=5, nearest=2)
    assert found.chosen == (59, 7)
    near = [token for each in found.neighbours for token, _ in each]
    assert {59, 7, *near, 0, 12, 24, 36, 48} == set(found.ids)
    assert len(set(found.ids)) == len(found.ids) == len(found.places)
    mean, axes, _ = components(values.double())
    assert torch.allclose(found.places[0], (values[59].double() - mean) @ axes)


def test_a_narrow_or_a_large_table(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = embedding_space(table(6, 2), [0])
    assert narrow.places.shape == (6, 3)
    assert narrow.shares[2] == 0
    monkeypatch.setattr(embedding_pca, "MOST_ROWS", 10)
    large = embedding_space(table(), [0])
    assert (large.rows, large.size) == (10, 60)
    assert embedding_space(torch.ones(4, 4), [0]).shares == (0, 0, 0)


def test_a_table_is_gone_through_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = neighbours(table(), [3, 40], 5)
    monkeypatch.setattr(embedding_pca, "CHUNK", 7)
    parts = neighbours(table(), [3, 40], 5)
    assert [[token for token, _ in each] for each in parts] == [
        [token for token, _ in each] for each in whole
    ]
