"""The feed-forward layer against its two formulas."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from models.feed_forward import ACTIVATION_FUNCTIONS, FeedForward
from models.trace import Recorder
from tests.grids import grid
from tests.models.building import shake

X = torch.randn(2, 5, 12, generator=torch.Generator().manual_seed(1))
FORMULAS = {
    "relu": lambda x: x.clamp(min=0),
    "gelu": lambda x: x * (1 + torch.erf(x / 2**0.5)) / 2,
    "gelu-tanh": lambda x: x * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3))) / 2,
    "silu": lambda x: x / (1 + torch.exp(-x)),
}


@pytest.mark.parametrize("activation", ACTIVATION_FUNCTIONS)
def test_activations(activation: str) -> None:
    torch.testing.assert_close(ACTIVATION_FUNCTIONS[activation](X), FORMULAS[activation](X))


@grid("bias, gated, activation", [True, False], [True, False], ACTIVATION_FUNCTIONS)
def test_formula(activation: str, gated: bool, bias: bool) -> None:
    layer = shake(FeedForward(12, 20, activation, gated, bias))
    up, down, gate = layer.up_proj, layer.down_proj, layer.gate_proj
    hidden = F.linear(X, up.weight, up.bias)
    if gate is None:
        hidden = FORMULAS[activation](hidden)
    else:
        hidden = FORMULAS[activation](F.linear(X, gate.weight, gate.bias)) * hidden
    torch.testing.assert_close(layer(X), F.linear(hidden, down.weight, down.bias))


def test_sizes() -> None:
    def size(layer: FeedForward) -> int:
        return sum(parameter.numel() for parameter in layer.parameters())

    assert size(FeedForward(12, 20)) == 2 * 12 * 20 + 20 + 12
    assert size(FeedForward(12, 20, gated=True)) == 3 * 12 * 20 + 20 + 20 + 12
    assert size(FeedForward(12, 20, bias=False)) == 2 * 12 * 20


def test_positions_do_not_meet() -> None:
    layer = shake(FeedForward(12, 20))
    torch.testing.assert_close(layer(X)[:, 2:3], layer(X[:, 2:3]))


def test_dropout_falls_between_hidden_and_out() -> None:
    layer = shake(FeedForward(12, 20, dropout=0.5)).train()
    tap = Recorder(("*",))
    out = layer(X, tap)

    def without(hidden: Tensor) -> Tensor:
        return F.linear(hidden, layer.down_proj.weight, layer.down_proj.bias)

    assert tap.values["hidden"].shape == (2, 5, 20)
    assert not torch.allclose(out, without(tap.values["hidden"]))
    layer.eval()
    torch.testing.assert_close(layer(X), without(tap.values["hidden"]))
