"""MultiHeadAttention is torch.nn.MultiheadAttention, forward and backward."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from models.attention import MultiHeadAttention
from models.masking import causal_mask, padding_mask
from tests.models.building import keep_of_lengths, shake
from tests.parity.reference import (
    TOLERANCE,
    assert_same,
    assert_same_gradients,
    attention_reference,
    gradients,
    torch_attention,
)

MASKS = {
    "no mask": None,
    "causal": causal_mask(5),
    "padding right": padding_mask(keep_of_lengths([5, 2, 4], 5)),
    "padding left": padding_mask(keep_of_lengths([5, 2, 4], 5, "left")),
    "causal and padding": causal_mask(5) & padding_mask(keep_of_lengths([5, 2, 4], 5)),
}
DTYPES = pytest.mark.parametrize("dtype", TOLERANCE, ids=["float64", "float32"])


def attention(dtype: torch.dtype) -> MultiHeadAttention:
    return shake(MultiHeadAttention(12, 3).to(dtype))


def stream(length: int, dtype: torch.dtype, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(3, length, 12, generator=generator).to(dtype).requires_grad_()


@DTYPES
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
def test_self_attention(mask: Tensor | None, dtype: torch.dtype) -> None:
    ours, x = attention(dtype), stream(5, dtype, seed=1)
    theirs, y = attention_reference(ours), x.detach().clone().requires_grad_()
    forbidden = None if mask is None else ~mask.expand(3, 3, 5, 5).flatten(0, 1)
    compare(ours(x, mask=mask), theirs(y, y, y, attn_mask=forbidden)[0], ours, theirs)
    assert x.grad is not None
    assert y.grad is not None
    assert_same(x.grad, y.grad, "the gradient of x")


@DTYPES
@pytest.mark.parametrize("lengths", [[7, 7, 7], [7, 1, 4]], ids=["whole", "padded"])
def test_cross_attention(lengths: list[int], dtype: torch.dtype) -> None:
    ours, x, memory = attention(dtype), stream(5, dtype, seed=1), stream(7, dtype, seed=2)
    theirs, keep = attention_reference(ours), keep_of_lengths(lengths, 7)
    answer, _ = theirs(x, memory, memory, key_padding_mask=~keep)
    compare(ours(x, memory, padding_mask(keep)), answer, ours, theirs)


def test_weights_of_every_head() -> None:
    from models.tap import Tap

    class Weights(Tap):
        def wants(self, name: str) -> bool:
            return name == "weights"

        def __call__(self, name: str, value: Tensor) -> Tensor:
            if name == "weights":
                seen.append(value)
            return value

    seen: list[Tensor] = []
    ours, x = attention(torch.float64), stream(5, torch.float64, seed=1)
    ours(x, mask=causal_mask(5), tap=Weights())
    forbidden = ~causal_mask(5)[0, 0]
    theirs = attention_reference(ours)(x, x, x, attn_mask=forbidden, average_attn_weights=False)
    assert_same(seen[0], theirs[1], "the weights")


def compare(
    answer: Tensor,
    expected: Tensor,
    ours: MultiHeadAttention,
    theirs: torch.nn.MultiheadAttention,
) -> None:
    """The answers and the gradients of every weight."""
    assert_same(answer, expected)
    direction = torch.linspace(-1, 1, expected.numel()).view_as(expected).to(expected.dtype)
    (answer * direction).sum().backward()
    (expected * direction).sum().backward()
    assert_same_gradients(torch_attention(gradients(ours)), gradients(theirs))
