"""Nearest tokens by hand, against all cosines at once, and without a direction."""

import pytest
import torch

from explorer.analysis import nearest_tokens as module
from explorer.analysis.nearest_tokens import nearest_by_part, nearest_tokens, parts_of


def noise(*size: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed))


def test_the_nearest_are_those_with_the_largest_cosine_and_not_the_token_itself() -> None:
    values = torch.tensor([[1.0, 0.0], [2.0, 0.1], [0.0, 1.0], [-1.0, 0.0], [0.0, 0.0]])
    found = nearest_tokens(values, values[[0, 4]], 2, torch.tensor([0, 4]))
    assert found.ids[0].tolist() == [1, 2]
    assert found.pairs(0)[0][1] == pytest.approx(2 / (4.01**0.5))
    with_itself = nearest_tokens(values, values[:1], 9)
    assert [token for token, _ in with_itself.pairs(0)] == [0, 1, 2, 3], "a zero is near nothing"


@pytest.mark.parametrize("chunk", [7, 16_384])
def test_parts_of_a_table_give_what_the_whole_gives(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHUNK", chunk)
    values, asked = noise(60, 8), noise(5, 8, seed=2)
    cosines = torch.nn.functional.cosine_similarity(asked[:, None], values[None], dim=-1)
    cosines[0, 40] = -torch.inf
    best = cosines.topk(4, 1)
    but = torch.tensor([40, -1, -1, -1, -1])
    *_, found = steps = list(nearest_by_part(values, asked, 4, but))
    assert len(steps) == parts_of(values)
    assert found.ids.tolist() == best.indices.tolist()
    torch.testing.assert_close(found.cosines, best.values)


def test_large_or_missing_values_are_near_what_they_point_at_or_nothing() -> None:
    values = noise(20, 8)
    asked = torch.stack([1e30 * values[7], torch.full((8,), torch.nan), torch.zeros(8)])
    found = nearest_tokens(values, asked, 3)
    assert found.pairs(0)[0][0] == 7
    assert found.pairs(1) == found.pairs(2) == []


def test_half_precision_is_widened() -> None:
    values = noise(20, 8)
    found = nearest_tokens(values.bfloat16(), values[[3]].bfloat16(), 3)
    assert found.cosines.dtype == torch.float32
    assert found.ids[0, 0] == 3
