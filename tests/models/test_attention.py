"""Attention: the fused kernel and the watched steps are one thing; who may attend to whom."""

from functools import partial

import pytest
import torch
from torch import Tensor

from models.attention import MultiHeadAttention, attention_weights, scaled_dot_product_attention
from models.families import documents
from models.masking import both, causal_mask, keep_of, padding_mask
from models.positional import token_positions
from models.tap import NO_TAP
from models.trace import RecordingTap

GENERATOR = torch.Generator().manual_seed(1)


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=GENERATOR, dtype=torch.float64).requires_grad_()


def some_mask() -> Tensor:
    """For 5 queries and 7 keys: one row, and the whole second sequence, may see nothing."""
    mask = torch.rand(2, 1, 5, 7, generator=GENERATOR) > 0.3
    mask[0, :, 2] = False
    mask[1] = False
    return mask


def test_a_masked_row_is_all_zeros_in_every_precision() -> None:
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        scores = (normal(2, 3, 5, 7) * 10).to(dtype).detach().requires_grad_()
        mask = some_mask()
        weights = attention_weights(scores, mask)
        assert (weights[(~mask).expand_as(weights)] == 0).all()
        (slope,) = torch.autograd.grad(weights.square().sum(), scores)
        assert slope.isfinite().all()
        assert (slope[1] == 0).all()


def test_a_mask_of_integers_is_that_of_booleans() -> None:
    q, k, v = normal(2, 4, 5, 8), normal(2, 4, 7, 8), normal(2, 4, 7, 8)
    attention, x, mask = MultiHeadAttention(12, 3).double(), normal(2, 5, 12), some_mask()
    square = mask[..., :5]
    for dtype, one in ((torch.int64, 1), (torch.int32, -1), (torch.uint8, 2)):
        given = scaled_dot_product_attention(q, k, v, one * mask.to(dtype))
        expected = scaled_dot_product_attention(q, k, v, mask)
        assert all(map(torch.equal, given, expected))
        for tap in (NO_TAP, RecordingTap()):
            attended = attention(x, mask=one * square.to(dtype), tap=tap)
            assert torch.equal(attended, attention(x, mask=square, tap=tap))
        document = documents.scaled_dot_product_attention(q, k, v, one * mask.to(dtype))
        assert all(map(torch.equal, document, expected))


@pytest.mark.usefixtures("shapes_unchecked")
def test_a_mask_of_floats_is_refused() -> None:
    q, attention, x = normal(2, 4, 5, 8), MultiHeadAttention(12, 3).double(), normal(2, 5, 12)
    ones = causal_mask(5).int()
    added = torch.zeros(1, 1, 5, 5).masked_fill(ones == 0, -torch.inf)
    for mask in (added, ones.float()):
        for attend in (partial(attention, x), partial(scaled_dot_product_attention, q, q, q)):
            with pytest.raises(ValueError, match="A mask is of booleans, or of integers"):
                attend(mask=mask)


def test_masks() -> None:
    assert causal_mask(3)[0, 0].int().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    for queries in range(1, 6):
        assert torch.equal(causal_mask(queries, 5), causal_mask(5)[:, :, 5 - queries :])
    causal = causal_mask(3)
    padding = padding_mask(torch.tensor([[True, True, False], [False, True, True]]))
    assert both(None, None) is None
    assert both(causal, None) is causal
    assert both(None, padding) is padding
    combined = both(causal, padding)
    assert combined is not None
    assert combined[1, 0].tolist() == [[False] * 3, [False, True, False], [False, True, True]]


def test_padding_is_not_kept_and_not_counted() -> None:
    ids = torch.tensor([[0, 5, 0], [0, 3, 4]])
    assert keep_of(ids, None) is None
    assert keep_of(ids, 9) is None, "nothing is padding: no mask to pay for"
    kept, begun = keep_of(ids, 0), keep_of(ids, 0, pad_begins=True)
    masks = [each is not None and each.int().tolist() for each in (kept, begun)]
    assert masks == [[[0, 1, 0], [0, 1, 1]], [[1, 1, 0], [1, 1, 1]]]
    keep = torch.tensor([[0, 0, 1, 1], [1, 1, 1, 0], [1, 0, 1, 1], [0, 0, 0, 0]], dtype=torch.bool)
    positions = token_positions(keep)
    assert positions[keep].tolist() == [0, 1, 0, 1, 2, 0, 1, 2]
    assert (positions >= 0).all()
