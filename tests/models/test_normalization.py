"""Norms against their formulas and against torch."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from models.normalization import NORMS, LayerNorm, RMSNorm
from tests.models.building import shake

EPS = 0.01
X = torch.randn(3, 5, 12, generator=torch.Generator().manual_seed(1)).double() * 3 + 1


def test_layer_norm_is_its_formula() -> None:
    norm = shake(LayerNorm(12, EPS).double())
    centred = X - X.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)  # divisor d, not d − 1
    expected = norm.weight * centred / (variance + EPS).sqrt() + norm.bias
    torch.testing.assert_close(norm(X), expected)


def test_rms_norm_is_its_formula() -> None:
    norm = shake(RMSNorm(12, EPS).double())
    expected = norm.weight * X / (X.square().mean(-1, keepdim=True) + EPS).sqrt()
    torch.testing.assert_close(norm(X), expected)


@pytest.mark.parametrize(
    ("name", "theirs"), [("layer", nn.LayerNorm(12, EPS)), ("rms", nn.RMSNorm(12, EPS))]
)
def test_norms_are_torchs(name: str, theirs: nn.Module) -> None:
    ours = shake(NORMS[name](12, EPS))
    theirs.load_state_dict(ours.state_dict(), strict=True)
    assert torch.equal(ours(X.float()), theirs(X.float()))


def test_a_constant_stream_is_no_accident() -> None:
    for norm in (LayerNorm(4), RMSNorm(4)):
        x = torch.zeros(1, 4, requires_grad=True)
        norm(x).sum().backward()
        assert x.grad is not None
        assert x.grad.isfinite().all()
