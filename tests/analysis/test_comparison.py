"""Two maps: their difference is right, and where there is none the reason is said."""

from __future__ import annotations

import pytest
import torch

from explorer.analysis.comparison import (
    NothingToSubtractError,
    Side,
    common_top,
    difference,
    divergence,
)
from explorer.catalog import opened_model
from explorer.inference.forward_pass import run_text


def side(text: str, head: int = 0) -> Side:
    return Side(
        text, run_text(opened_model.open_model("negation"), text), "encoder.self_attn", 0, head
    )


def test_a_difference_is_second_minus_first_and_of_a_head_with_itself_nothing() -> None:
    first, second = side("the food was good"), side("the food was good", head=1)
    found = difference(first, second)
    assert torch.equal(found.values, second.values - first.values)
    assert found.largest == float(found.values.abs().max()) > 0
    assert found.note == "Both maps are over the same tokens."
    assert 0 < divergence(first, second) <= 1
    assert divergence(first, second) == pytest.approx(divergence(second, first))
    assert common_top(first, second) == float(torch.max(first.values.max(), second.values.max()))
    assert not difference(first, first).values.any()
    assert divergence(first, first) == 0


def test_other_tokens_are_compared_at_their_places_and_other_lengths_not_at_all() -> None:
    first, second = side("the food was good"), side("the food was bad")
    labels = len(first.rows) + len(first.columns)
    assert f"(2 of {labels} labels differ)" in difference(first, second).note
    with pytest.raises(NothingToSubtractError, match="choose texts of equally many tokens"):
        difference(first, side("the food was not very good"))
