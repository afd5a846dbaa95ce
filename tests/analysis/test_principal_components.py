"""Principal components against torch's own singular values, at length one."""

import pytest
import torch

from explorer.analysis import principal_components
from explorer.analysis.principal_components import principal_axes, rows_measured, sample_rows


def table(rows: int = 60, width: int = 8) -> torch.Tensor:
    noise = torch.randn(rows, width, generator=torch.Generator().manual_seed(1))
    return noise * torch.linspace(3, 0.1, width) + 1


@pytest.mark.parametrize("size", [(60, 8), (8, 60)], ids=["tall", "wide"])
@pytest.mark.parametrize("in_double", [True, False])
def test_axes_are_those_of_the_singular_value_decomposition(
    size: tuple[int, int], in_double: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not in_double:
        monkeypatch.setattr(principal_components, "DOUBLE", 0)
        monkeypatch.setattr(principal_components, "CHUNK", 20)
    values = table(*size)
    found = principal_axes(values)
    units = values.double() / values.double().norm(dim=-1, keepdim=True)
    centred = units - units.mean(0)
    _, sizes, directions = torch.linalg.svd(centred, full_matrices=False)
    error = 1e-9 if in_double else 1e-5
    torch.testing.assert_close(found.mean, units.mean(0), atol=error, rtol=0)
    alike = (found.directions.mT @ directions[:3].mT).abs()
    torch.testing.assert_close(alike, torch.eye(3).double(), atol=error, rtol=0)
    expected = (sizes.square() / sizes.square().sum())[:3].tolist()
    assert found.shares == pytest.approx(expected, abs=error)
    assert (found.directions.amax(0) >= -found.directions.amin(0)).all(), "one sign every time"
    assert (found.rows, found.size) == (size[0], size[0])


def test_places_are_projections_at_length_one_and_the_axes_hold_their_share() -> None:
    values = table()
    found = principal_axes(values)
    units = values.double() / values.double().norm(dim=-1, keepdim=True)
    centred = units - units.mean(0)
    torch.testing.assert_close(found.places(values), centred @ found.directions)
    torch.testing.assert_close(found.places(7 * values[None]), found.places(values)[None])
    assert found.share_of(values) == pytest.approx(sum(found.shares))
    assert found.share_of(values[:1]) is None
    assert found.share_of(torch.full((2, 8), torch.nan)) is None


def test_a_narrow_or_a_constant_table() -> None:
    narrow = principal_axes(table(6, 2))
    assert narrow.directions.shape == (2, 3)
    assert narrow.shares[2] == 0
    assert principal_axes(torch.ones(4, 4)).shares == (0, 0, 0)
    assert principal_axes(torch.zeros(4, 4)).places(torch.zeros(4)).tolist() == [0, 0, 0]


def test_values_that_are_not_finite_have_no_axes() -> None:
    values = table()
    values[3, 1] = torch.nan
    with pytest.raises(torch.linalg.LinAlgError):
        principal_axes(values)


def test_of_a_large_table_as_many_rows_are_measured_as_are_worth_the_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert len(rows_measured(torch.empty(49_152, 576, device="meta"))) == 49_152
    assert 90_000 < len(rows_measured(torch.empty(250_000, 768, device="meta"))) < 250_000
    assert len(rows_measured(torch.empty(128_000, 4_096, device="meta"))) == 1_024
    monkeypatch.setattr(principal_components, "WORK", 10 * 8**2)
    found = principal_axes(table())
    assert (found.rows, found.size) == (10, 60)


def test_a_sample_is_the_same_every_time_and_has_no_row_twice() -> None:
    assert sample_rows(5, 9).tolist() == [0, 1, 2, 3, 4]
    found = sample_rows(10_000, 100).tolist()
    assert found == sample_rows(10_000, 100).tolist() == sorted(set(found))
    assert len(found) == 100
    assert max(found) > 9_000
