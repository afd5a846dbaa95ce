"""Attention and its masks: the fused kernel, the watched steps and the formula are one thing."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from models.attention import (
    MultiHeadAttention,
    attention_scores,
    attention_weights,
    fused_attention,
    repeat_groups,
    scaled_dot_product_attention,
)
from models.masking import both, causal_mask, keep_of, padding_mask, token_positions
from tests.grids import grid
from tests.models.building import shake

GENERATOR = torch.Generator().manual_seed(1)
close = torch.testing.assert_close


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=GENERATOR, dtype=torch.float64).requires_grad_()


def some_mask() -> Tensor:
    """For 5 queries and 7 keys: one row, and the whole second sequence, may see nothing."""
    mask = torch.rand(2, 1, 5, 7, generator=GENERATOR) > 0.3
    mask[0, :, 2] = False
    mask[1] = False
    return mask


def test_the_formula_of_the_paper() -> None:
    q, k, v = normal(1, 1, 5, 4), normal(1, 1, 7, 4), normal(1, 1, 7, 4)
    out, weights = scaled_dot_product_attention(q, k, v)
    for i in range(5):
        exponents = [math.exp(q[0, 0, i].dot(k[0, 0, j]).item() / math.sqrt(4)) for j in range(7)]
        expected = torch.tensor(exponents, dtype=torch.float64) / sum(exponents)
        close(weights[0, 0, i], expected)
        close(out[0, 0, i], expected @ v[0, 0])
    close(attention_scores(q, k, 0.5), attention_scores(q, k, 1.0) / 2)


@grid("groups, masked, biased", (4, 2, 1), (False, True), (False, True))
def test_fused_is_watched_with_its_gradients(groups: int, masked: bool, biased: bool) -> None:
    q, k, v = normal(2, 4, 5, 8), normal(2, groups, 7, 8), normal(2, groups, 7, 8)
    mask = some_mask() if masked else None
    bias = normal(1, 4, 5, 7).detach() if biased else None
    fused = fused_attention(q, k, v, mask, bias)
    watched, _ = scaled_dot_product_attention(q, k, v, mask, bias)
    close(fused, watched)
    gradients = [torch.autograd.grad(out.square().sum(), (q, k, v)) for out in (fused, watched)]
    for one, other in zip(*gradients, strict=True):
        assert one.isfinite().all()
        close(one, other)


def test_a_masked_row_is_all_zeros_in_every_precision(subtests: pytest.Subtests) -> None:
    for dtype in [torch.float64, torch.float32, torch.bfloat16, torch.float16]:
        with subtests.test(dtype=dtype):
            scores = (normal(2, 3, 5, 7) * 10).to(dtype).detach().requires_grad_()
            weights = attention_weights(scores, some_mask())
            assert (weights[0, :, 2] == 0).all()
            assert (weights[1] == 0).all()
            weights.square().sum().backward()
            assert scores.grad is not None
            assert scores.grad.isfinite().all()
            assert (scores.grad[1] == 0).all()


def test_rows_of_weights_sum_to_one_or_to_nothing() -> None:
    mask = some_mask()
    weights = attention_weights(normal(2, 3, 5, 7), mask, normal(1, 3, 5, 7))
    close(weights.sum(-1), mask.any(-1).expand(2, 3, 5).double())
    assert (weights[(~mask).expand_as(weights)] == 0).all()


def test_grouped_attention_is_attention_with_repeated_projections() -> None:
    grouped = shake(MultiHeadAttention(12, 6, n_kv_heads=2))
    whole = MultiHeadAttention(12, 6)
    weights = grouped.state_dict()
    for name in ("k_proj.weight", "k_proj.bias", "v_proj.weight", "v_proj.bias"):
        per_group = weights[name].unflatten(0, (2, 2))
        weights[name] = per_group.repeat_interleave(3, dim=0).flatten(0, 1)
    whole.load_state_dict(weights)
    x = torch.randn(2, 5, 12, generator=GENERATOR)
    close(grouped(x), whole(x))
    x = normal(2, 2, 5, 3)
    assert torch.equal(repeat_groups(x, 6)[:, :3], x[:, :1].expand(-1, 3, -1, -1))
    assert repeat_groups(x, 2) is x


def test_sizes() -> None:
    assert sum(p.numel() for p in MultiHeadAttention(512, 8).parameters()) == 1_050_624
    narrow = MultiHeadAttention(10, 3, d_head=4, qkv_bias=False, bias=False)
    assert narrow(torch.zeros(2, 5, 10)).shape == (2, 5, 10)
    assert all("bias" not in name for name, _ in narrow.named_parameters())
    with pytest.raises(ValueError, match="d_model 10 is not divisible by n_heads 3"):
        MultiHeadAttention(10, 3)


def test_causal_mask_is_the_lower_triangle() -> None:
    rows = ["10000", "11000", "11100", "11110", "11111"]
    expected = torch.tensor([[cell == "1" for cell in row] for row in rows])
    assert torch.equal(causal_mask(5), expected[None, None])
    for queries in range(1, 6):
        assert torch.equal(causal_mask(queries, 5), causal_mask(5)[:, :, 5 - queries :])


def test_masks_combine() -> None:
    keep = torch.tensor([[True, True, False], [False, True, True]])
    causal, padding = causal_mask(3), padding_mask(keep)
    assert padding.shape == (2, 1, 1, 3)
    assert torch.equal(padding[:, 0, 0], keep)
    assert both(None, None) is None
    assert both(causal, None) is causal
    assert both(None, padding) is padding
    combined = both(causal, padding)
    assert combined is not None
    assert combined[1, 0].tolist() == [[False] * 3, [False, True, False], [False, True, True]]


def test_padding_is_not_kept() -> None:
    ids = torch.tensor([[0, 5, 0], [0, 3, 4]])
    assert keep_of(ids, None) is None
    assert keep_of(ids, 9) is None, "nothing is padding: no mask to pay for"
    kept, begun = keep_of(ids, 0), keep_of(ids, 0, pad_begins=True)
    assert kept is not None
    assert kept.tolist() == [[False, True, False], [False, True, True]]
    assert begun is not None
    assert begun.tolist() == [[True, True, False], [True, True, True]]
    assert keep_of(ids[:, :2], 0, pad_begins=True) is None


def test_positions_count_real_tokens() -> None:
    keep = torch.tensor([[0, 0, 1, 1], [1, 1, 1, 0], [1, 0, 1, 1], [0, 0, 0, 0]], dtype=torch.bool)
    positions = token_positions(keep)
    assert positions[keep].tolist() == [0, 1, 0, 1, 2, 0, 1, 2]
    assert (positions >= 0).all()
