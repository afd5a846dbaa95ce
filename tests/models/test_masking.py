"""Masks: True may look, and masks combine."""

from __future__ import annotations

import torch

from models.masking import both, causal_mask, keep_of, padding_mask, token_positions


def test_causal_mask_is_the_lower_triangle() -> None:
    rows = ["10000", "11000", "11100", "11110", "11111"]
    expected = torch.tensor([[cell == "1" for cell in row] for row in rows])
    assert torch.equal(causal_mask(5), expected[None, None])


def test_causal_mask_of_the_last_queries() -> None:
    for queries in range(1, 6):
        assert torch.equal(causal_mask(queries, 5), causal_mask(5)[:, :, 5 - queries :])


def test_padding_hides_keys_from_everybody() -> None:
    keep = torch.tensor([[True, True, False], [False, True, True]])
    mask = padding_mask(keep)
    assert mask.shape == (2, 1, 1, 3)
    assert torch.equal(mask[:, 0, 0], keep)
    together = mask & causal_mask(3)
    assert together.shape == (2, 1, 3, 3)
    assert together[1, 0].tolist() == [[False] * 3, [False, True, False], [False, True, True]]


def test_both() -> None:
    causal, padding = causal_mask(3), padding_mask(torch.tensor([[True, False, True]]))
    assert both(None, None) is None
    assert both(causal, None) is causal
    assert both(None, padding) is padding
    combined = both(causal, padding)
    assert combined is not None
    assert torch.equal(combined, causal & padding)


def test_keep_of() -> None:
    ids = torch.tensor([[5, 0], [3, 4]])
    assert keep_of(ids, None) is None
    assert keep_of(ids, 9) is None, "nothing is padding: no mask to pay for"
    kept = keep_of(ids, 0)
    assert kept is not None
    assert kept.tolist() == [[True, False], [True, True]]


def test_padding_that_begins_a_text_is_a_token() -> None:
    kept = keep_of(torch.tensor([[0, 5, 0], [0, 3, 4]]), 0, pad_begins=True)
    assert kept is not None
    assert kept.tolist() == [[True, True, False], [True, True, True]]
    assert keep_of(torch.tensor([[0, 5]]), 0, pad_begins=True) is None


def test_positions_count_real_tokens() -> None:
    keep = torch.tensor([[0, 0, 1, 1], [1, 1, 1, 0], [1, 0, 1, 1], [0, 0, 0, 0]], dtype=torch.bool)
    positions = token_positions(keep)
    assert positions[keep].tolist() == [0, 1, 0, 1, 2, 0, 1, 2]
    assert (positions >= 0).all()
