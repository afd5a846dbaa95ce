"""Attention alone is torch.nn.MultiheadAttention, forward and backward."""

from collections.abc import Mapping

import pytest
import torch
from torch import Tensor, nn

from models.attention import MultiHeadAttention
from models.trace import RecordingTap
from tests.closeness import assert_close_to
from tests.tiny import shake

DTYPES = (torch.float64, torch.float32)


def torch_attention(values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Values of one attention by the names that torch gives them."""
    renamed = {}
    for kind in ("weight", "bias"):
        renamed[f"in_proj_{kind}"] = torch.cat([values[f"{x}_proj.{kind}"] for x in "qkv"])
        renamed[f"out_proj.{kind}"] = values[f"o_proj.{kind}"]
    return renamed


def gradients(module: nn.Module) -> dict[str, Tensor]:
    return {n: p.grad for n, p in module.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_attention_has_a_mask_of_its_own_in_every_head(dtype: torch.dtype) -> None:
    ours = shake(MultiHeadAttention(12, 3).to(dtype))
    theirs = nn.MultiheadAttention(12, 3, batch_first=True, dtype=dtype)
    theirs.load_state_dict(torch_attention(ours.state_dict()))
    generator = torch.Generator().manual_seed(3)
    x, memory = (torch.randn(2, length, 12, generator=generator).to(dtype) for length in (5, 7))
    mask = torch.rand(2, 3, 5, 7, generator=generator) < 0.5
    mask[..., 0] = True  # torch gives NaN to a query that sees nothing
    tap = RecordingTap()
    watched, fused = ours(x, memory, mask, tap=tap), ours(x, memory, mask)
    hidden = ~mask.flatten(0, 1)
    answer, expected = theirs(x, memory, memory, attn_mask=hidden, average_attn_weights=False)
    assert_close_to(tap.values["weights"], expected)
    assert_close_to(watched, answer)
    assert_close_to(fused, answer)
    for one in (fused, answer):
        one.square().sum().backward()
    mine, reference = torch_attention(gradients(ours)), gradients(theirs)
    assert mine.keys() == reference.keys()
    for name, gradient in reference.items():
        assert_close_to(mine[name], gradient, what=f"the gradient of {name}")
