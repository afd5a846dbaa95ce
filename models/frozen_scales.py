"""Modules as linear maps, their scale frozen at its value in one pass.

A norm divides its input by a scale; an activation and a soft cap multiply each number by a factor.
Frozen at their values in a pass, all are linear and equal to the real ones at this input, so each
part of the residual stream has its own share of the output.
Shapes: p positions, d width of the model, v options of the output.
Source: A Mathematical Framework for Transformer Circuits (Elhage et al. 2021), on logits as sums
over the residual stream.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from models.block import IDENTITY, Residual
from models.normalization import LayerNorm, RMSNorm
from models.output_heads import ClassifierHead, LanguageModelHead, MaskedTransform

Linear = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Frozen:
    """A module at one input: `linear` of each part of it, and what is `added` for any input."""

    linear: Linear
    added: Tensor | None = None

    def __call__(self, x: Tensor) -> Tensor:
        """The module's output, for the input that it was frozen at."""
        return self.linear(x) if self.added is None else self.linear(x) + self.added

    def then(self, after: "Frozen") -> "Frozen":
        """Both, one after another."""
        added = after.added if self.added is None else after(self.added)
        return Frozen(lambda part: after.linear(self.linear(part)), added)


UNCHANGED = Frozen(lambda part: part)


def without_scale(norm: nn.Module) -> Linear:
    """A norm without its scale and bias: γ ⊙ (x − μ), or γ ⊙ x of an RMSNorm."""
    if isinstance(norm, LayerNorm):
        return lambda part: (part - part.mean(-1, keepdim=True)) * norm.weight
    return (lambda part: part * norm.weight) if isinstance(norm, RMSNorm) else UNCHANGED.linear


def scale_of(norm: nn.Module, x: Tensor) -> Tensor | float:
    """The factor 1/σ (…, 1) by which a norm multiplies x (…, d)."""
    if not isinstance(norm, LayerNorm | RMSNorm):
        return 1.0
    x = x - x.mean(-1, keepdim=True) if isinstance(norm, LayerNorm) else x
    return (x.square().mean(-1, keepdim=True) + norm.eps).rsqrt()


def freeze_norm(norm: nn.Module, x: Tensor) -> Frozen:
    """A norm of x (…, d), or nn.Identity."""
    if isinstance(norm, nn.Identity):
        return UNCHANGED
    linear, scale = without_scale(norm), scale_of(norm, x)
    return Frozen(lambda part: linear(part) * scale, getattr(norm, "bias", None))


def freeze_activation(activation: Linear, x: Tensor) -> Frozen:
    """An activation of x with f(0) = 0: every number times its factor f(x) / x."""
    factor = torch.where(x == 0, torch.zeros_like(x), activation(x) / x)
    return Frozen(lambda part: part * factor)


def freeze_linear(layer: nn.Linear) -> Frozen:
    return Frozen(lambda part: part @ layer.weight.mT, layer.bias)


def sum_norm(residual: Residual) -> nn.Module:
    """The norm of the residual stream after the layer's output is added."""
    return IDENTITY if residual.pre else residual.norm


@dataclass(frozen=True, eq=False)
class FrozenResidual:
    """A residual connection: the part of the layer's output that is added, and the sum after it."""

    write: Frozen
    summed: Frozen

    def __call__(self, x: Tensor, out: Tensor) -> Tensor:
        """The residual stream after the layer wrote `out`."""
        return self.summed(x + self.write(out))


def freeze_residual(residual: Residual, x: Tensor, out: Tensor) -> FrozenResidual:
    """For the residual stream x before the layer and the layer's output `out`, (…, d)."""
    write = freeze_norm(residual.out_norm, out)
    return FrozenResidual(write, freeze_norm(sum_norm(residual), x + write(out)))


def residual_without_scale(residual: Residual) -> tuple[Linear, Linear]:
    """The norms of the output and of the sum, without their scales."""
    return without_scale(residual.out_norm), without_scale(sum_norm(residual))


def is_plain_sum(residual: Residual) -> bool:
    """Whether the layer's output is added to the residual stream without a norm."""
    return all(isinstance(n, nn.Identity) for n in (residual.out_norm, sum_norm(residual)))


def freeze_words(
    head: LanguageModelHead, x: Tensor, embedding: Tensor, options: Tensor | None = None
) -> Frozen:
    """The head of a language model at x (p, d): logits (p, v) of `options`, or of all."""
    transform = _freeze_transform(head.transform, x)
    words: Tensor = embedding if head.weight is None else head.weight
    bias: Tensor | None = head.bias
    if options is not None:
        words, bias = words[options], None if bias is None else bias[options]
    logits = Frozen(lambda part: part @ words.mT * head.scale, bias)
    if (cap := head.cap) is None:
        return transform.then(logits)
    uncapped = logits(head.transform(x[None])[0])
    share = (cap * (uncapped / cap).tanh() / uncapped).nan_to_num(nan=1.0)
    return transform.then(logits).then(Frozen(lambda part: part * share))


def freeze_classes(head: ClassifierHead, pooled: Tensor) -> Frozen:
    """The head of a classifier at the pooled vector (…, d): logits of the classes."""
    if head.hidden is None:
        return freeze_linear(head.out)
    hidden = freeze_linear(head.hidden)
    active = freeze_activation(head.activation, hidden(pooled))
    return hidden.then(active).then(freeze_linear(head.out))


def _freeze_transform(transform: nn.Module, x: Tensor) -> Frozen:
    if not isinstance(transform, MaskedTransform):
        return UNCHANGED
    inside = transform.proj(x)
    active = freeze_activation(transform.activation, inside)
    norm = freeze_norm(transform.norm, transform.activation(inside))
    return freeze_linear(transform.proj).then(active).then(norm)
