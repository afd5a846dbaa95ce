"""Two maps: their difference is right, and where there is none the reason is said."""

from __future__ import annotations

import pytest
import torch

from explorer import library
from explorer.analysis.comparing import (
    NothingToSubtractError,
    Side,
    common_top,
    difference,
    divergence,
)
from explorer.reading import read

PART = "encoder.self_attn"


def side(text: str, head: int = 0, name: str = "negation") -> Side:
    opened = library.open_model(name)
    return Side(text, read(opened, text), PART, 0, head)


def test_a_head_beside_itself_is_no_different() -> None:
    one, same = side("the food was good"), side("the food was good")
    found = difference(one, same)
    assert not found.values.any()
    assert found.largest == 0
    assert divergence(one, same) == 0
    assert found.note == "Both maps are over the same tokens."


def test_a_difference_is_second_minus_first_and_turns_its_sign() -> None:
    first, second = side("the food was good"), side("the food was good", head=1)
    found, back = difference(first, second), difference(second, first)
    assert torch.equal(found.values, second.values - first.values)
    assert torch.equal(found.values, -back.values)
    assert found.largest == float((second.values - first.values).abs().max()) > 0
    assert 0 < divergence(first, second) <= 1
    assert divergence(first, second) == pytest.approx(divergence(second, first))
    torch.testing.assert_close(found.values.sum(-1), torch.zeros(len(first.rows)))


def test_other_tokens_are_compared_at_their_places_and_that_is_said() -> None:
    first, second = side("the food was good"), side("the food was bad")
    labels = len(first.rows) + len(first.columns)
    assert f"(2 of {labels} labels differ)" in difference(first, second).note


def test_of_two_lengths_there_is_no_difference() -> None:
    with pytest.raises(NothingToSubtractError, match="choose texts of equally many tokens"):
        difference(side("the food was good"), side("the food was not very good"))


def test_both_maps_end_at_the_largest_weight_of_the_two() -> None:
    first, second = side("the food was good"), side("the food was good", head=1)
    assert common_top(first, second) == float(torch.max(first.values.max(), second.values.max()))
