"""Norms and activations as linear maps, their scale frozen at its value in this pass.

A norm divides its input by a scale, an activation multiplies each number by a factor. With scale
and factors frozen at their values in the pass, both are linear and equal to the real ones at
this input. A direction (…, d) is what a residual stream is multiplied with to give a logit; here
directions are taken backwards through such maps.
Source: A Mathematical Framework for Transformer Circuits (Elhage et al. 2021), on logits as
sums over the residual stream.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from models.normalization import LayerNorm, RMSNorm

Before = tuple[Tensor, float]
"""A direction in front of a map, and what the map adds to the logit for any input."""


def before_norm(norm: nn.Module, x: Tensor, direction: Tensor) -> Before:
    """Through a norm of x (…, d); through nn.Identity unchanged."""
    if isinstance(norm, RMSNorm):
        size = (x.square().mean(-1, keepdim=True) + norm.eps).rsqrt()
        return direction * norm.weight * size, 0.0
    if not isinstance(norm, LayerNorm):
        return direction, 0.0
    scaled = direction * norm.weight * (x.var(-1, correction=0, keepdim=True) + norm.eps).rsqrt()
    return scaled - scaled.mean(-1, keepdim=True), float((direction * norm.bias).sum())


def before_activation(act: Callable[[Tensor], Tensor], x: Tensor, direction: Tensor) -> Tensor:
    """Through an activation of x with f(0) = 0: every number times its factor f(x) / x."""
    return direction * torch.where(x == 0, torch.zeros_like(x), act(x) / x)


def before_linear(linear: nn.Linear, direction: Tensor) -> Before:
    added = 0.0 if linear.bias is None else float((direction * linear.bias).sum())
    return direction @ linear.weight, added


def through_norm(norm: nn.Module, x: Tensor, given: Tensor) -> Tensor:
    """What a norm of x (…, d) makes of a part `given` (n, d) of its input; the bias is no part's.

    The parts of x then sum to what the norm makes of x, less its bias.
    """
    if isinstance(norm, RMSNorm):
        return linear_part(norm, given) * (x.square().mean(-1, keepdim=True) + norm.eps).rsqrt()
    if not isinstance(norm, LayerNorm):
        return given
    return linear_part(norm, given) * (x.var(-1, correction=0, keepdim=True) + norm.eps).rsqrt()


def linear_part(norm: nn.Module, given: Tensor) -> Tensor:
    """What is left of a norm without its scale and bias: γ ⊙ (x − μ), or γ ⊙ x of an RMSNorm."""
    if isinstance(norm, RMSNorm):
        return given * norm.weight
    if not isinstance(norm, LayerNorm):
        return given
    return (given - given.mean(-1, keepdim=True)) * norm.weight


def before_linear_part(norm: nn.Module, direction: Tensor) -> Tensor:
    """A direction (…, d) in front of the same map."""
    if isinstance(norm, RMSNorm):
        return direction * norm.weight
    if not isinstance(norm, LayerNorm):
        return direction
    scaled = direction * norm.weight
    return scaled - scaled.mean(-1, keepdim=True)
