"""Two maps: their difference is right, and where there is none the reason is said."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from explorer.analysis.comparison import (
    common_scale,
    largest_change,
    map_difference,
    map_divergence,
)
from explorer.analysis.token_alignment import NotAlignedError
from explorer.catalog import opened_model
from explorer.inference.forward_pass import ForwardPass, run_text
from explorer.snippets import Head
from explorer.views.compare.compared_maps import alignment
from explorer.views.shared.map_pair import MapSide, align_sides

PART = "encoder.self_attn"


def passed(text: str) -> ForwardPass:
    return run_text(opened_model.open_model("negation"), text)


def weights(text: str, head: int = 0) -> Tensor:
    return passed(text).weights(PART, 0, head)


def test_a_difference_is_second_minus_first_and_of_a_head_with_itself_nothing() -> None:
    first, second = weights("the food was good"), weights("the food was good", head=1)
    rows = torch.ones(len(first), dtype=torch.bool)
    found = map_difference(first, second)
    assert torch.equal(found, second - first)
    assert largest_change(found) == float(found.abs().max()) > 0
    assert 0 < map_divergence(first, second, rows) <= 1
    assert map_divergence(first, second, rows) == pytest.approx(map_divergence(second, first, rows))
    assert common_scale(first, second) == float(torch.max(first.max(), second.max()))
    assert not map_difference(first, first).any()
    assert map_divergence(first, first, rows) == 0


def test_other_tokens_are_compared_at_their_places_and_other_lengths_not_at_all() -> None:
    first, second, longer = (
        MapSide(text, Head(passed(text), Path("negation"), PART, 0, 0))
        for text in ("the food was good", "the food was bad", "the food was not very good")
    )

    def said(one: MapSide, other: MapSide) -> str:
        return alignment(one, other, align_sides(one, other))

    assert said(first, first) == "Both maps are over the same tokens."
    labels = len(first.rows) + len(first.columns)
    assert f"(2 of {labels} labels differ), so cells are compared by position" in said(
        first, second
    )
    aligned = align_sides(first, second)
    assert torch.equal(aligned.difference, second.values - first.values)
    with pytest.raises(NotAlignedError, match="5 and 7 tokens of different texts, so their"):
        align_sides(first, longer)
