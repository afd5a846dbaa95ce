"""Every stage made again from the stages before it, by its formula, in float64.

Nothing of the model's code for these steps is used, only its weights: what the pass had
and what the formula gives are two ways to the same numbers (of positions: `walk_positions`).
Only what heads give beside each other is made by `head_outs`, for the rows that are asked for.
Of a vocabulary only the rows and columns that are asked for are made.
Shapes: t tokens, n keys, w width of one head, d width of the model.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from explorer.analysis.forward_pass.position_formulas import buckets, frequencies, sinusoids, slope
from explorer.analysis.forward_pass.stage_line import Stage
from explorer.analysis.forward_pass.stage_values import Walk
from explorer.analysis.residual_writes import head_outs
from models.normalization import LayerNorm, RMSNorm
from models.positional import PositionalEncoding

Columns = slice | list[int]
ALL = slice(None)


class Again:
    """The rows of a stage by its formula, from the values of the stages it reads."""

    def __init__(self, walk: Walk, stage: Stage, rows: slice, columns: Columns) -> None:
        self.walk, self.stage, self.config = walk, stage, walk.config
        self.rows, self.columns = rows, columns

    def read(self, at: int = 0) -> Tensor:
        """The same rows of a stage that this one reads."""
        return self._value(at)[self.rows].double()

    def whole(self, at: int = 0) -> Tensor:
        return self._value(at).double()

    def _value(self, at: int) -> Tensor:
        return self.walk[self.stage.reads[at]].detach()

    @property
    def module(self) -> Any:
        return self.walk.module(self.stage)


def again(walk: Walk, stage: Stage, rows: slice = ALL, columns: Columns = ALL) -> Tensor:
    """These rows of a stage, from the stages before it; of logits these columns."""
    with torch.no_grad():
        return FORMULAS[stage.kind](Again(walk, stage, rows, columns))


def difference(walk: Walk, stage: Stage, rows: slice = ALL, columns: Columns = ALL) -> float:
    """The largest between the value of the pass and the formula's, by the largest number.

    NaN where no value is finite, so that there is nothing to compare.
    """
    value = walk[stage.name][rows].detach()
    value = (value[:, columns] if stage.kind == "logits" else value).double()
    found = again(walk, stage, rows, columns)
    if torch.equal(value, found):
        return 0.0
    finite = value.isfinite()
    if not torch.equal(finite, found.isfinite()):
        return math.inf
    if not finite.any():
        return math.nan
    largest = float(value[finite].abs().max())
    return float((value - found)[finite].abs().max()) / (largest or 1.0)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    made = x @ weight.detach().double().mT
    return made if bias is None else made + bias.detach().double()


def norm(x: Tensor, module: Any) -> Tensor:
    """γ ⊙ (x − μ) / √(σ² + ε) + β, or without the mean, or nothing where there is none."""
    if isinstance(module, LayerNorm):
        centred = x - x.mean(-1, keepdim=True)
        size = (centred.square().mean(-1, keepdim=True) + module.eps).sqrt()
        return centred / size * module.weight.double() + module.bias.double()
    if isinstance(module, RMSNorm):
        return x / (x.square().mean(-1, keepdim=True) + module.eps).sqrt() * module.weight.double()
    return x


def activation(x: Tensor, name: str) -> Tensor:
    """relu max(0, x); silu x σ(x); gelu x Φ(x), or Φ by a tanh."""
    if name == "relu":
        return x.clamp(min=0)
    if name == "silu":
        return x / (1 + (-x).exp())
    if name == "gelu":
        return x / 2 * (1 + torch.erf(x / math.sqrt(2)))
    if name == "gelu-tanh":
        return x / 2 * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return x.tanh()


def bend(x: Tensor, cap: float | None) -> Tensor:
    return x if cap is None else cap * torch.tanh(x / cap)


def softmax(x: Tensor) -> Tensor:
    """e^x over its sum; a row in which everything is −∞ gives zeros."""
    largest = x.amax(-1, keepdim=True)
    raised = (x - torch.where(largest.isfinite(), largest, 0)).exp()
    total = raised.sum(-1, keepdim=True)
    return torch.where(total > 0, raised / total, torch.zeros_like(raised))


def _embed(one: Again) -> Tensor:
    scale = one.config.d_model**0.5 if one.config.scale_embedding else 1.0
    ids = one.walk.ids(one.stage.stack)[one.rows]
    rows: Tensor = one.module.weight[ids].double()
    return rows * scale


def _positions(one: Again) -> Tensor:
    places = one.walk.places(one.stage.stack)[one.rows]
    if isinstance(one.module, PositionalEncoding):
        return sinusoids(places, one.config.d_model, one.config.pairs == "halves")
    rows: Tensor = one.module.table.weight[places + one.config.position_offset]
    return rows.double()


def _segments(one: Again) -> Tensor:
    return one.module.weight.double()[one.walk.segments(one.stage.stack)[one.rows]]


def _projected(one: Again) -> Tensor:
    """One head's share of x W + b."""
    width = one.config.head_width
    head = one.walk.head_of(one.stage, len(one.module.weight) // width)
    mine = slice(head * width, (head + 1) * width)
    bias = one.module.bias
    return linear(one.read(), one.module.weight[mine], None if bias is None else bias[mine])


def _turned(one: Again) -> Tensor:
    """Every pair of numbers turned by position × its frequency; the rest is left alone."""
    config, x = one.config, one.read()
    places = one.walk.places(one.stage.stack)[one.rows]
    angles = places[:, None] * frequencies(config)  # in float32, as the model has them
    stretch = 1.0 if config.rope_scaling is None else config.rope_scaling.attention_factor
    cos, sin = angles.cos().double() * stretch, angles.sin().double() * stretch
    width = config.rotary_width
    halves = config.pairs != "adjacent"
    at = torch.arange(width // 2)
    first, second = (at, at + width // 2) if halves else (2 * at, 2 * at + 1)
    made = x.clone()
    made[:, first] = x[:, first] * cos - x[:, second] * sin
    made[:, second] = x[:, first] * sin + x[:, second] * cos
    return made


def _masked(one: Again) -> Tensor:
    logits = one.read() + (one.read(1) if len(one.stage.reads) > 1 else 0)
    return torch.where(one.walk.mask(one.stage)[one.rows], logits, -torch.inf)


def _bias(one: Again) -> Tensor:
    """−slope × distance, or the number of the distance's bucket."""
    places, head = one.walk.places(one.stage.stack), one.walk.head
    offsets = places[None, :] - places[one.rows][:, None]
    if one.config.positions == "alibi":
        return -slope(head, one.config.n_heads) * offsets.abs().double()
    found = buckets(offsets, one.config, causal=one.stage.stack == "decoder")
    return one.module.table.weight.double()[found, head]


def _concat(one: Again) -> Tensor:
    """Every head's outputs from its own weights and values, side by side."""
    places = torch.arange(len(one.walk[one.stage.reads[0]]))[one.rows]
    heads = head_outs(one.walk.forward, one.stage.name.removesuffix(".concat"), places)
    return torch.cat(list(heads.double()), -1)


def _activation(one: Again) -> Tensor:
    inside = activation(one.read(), one.config.activation)
    return inside * one.read(1) if len(one.stage.reads) > 1 else inside


def _pooled(one: Again) -> Tensor:
    x, pad = one.whole(), one.config.pad_id
    ids = one.walk.ids(one.stage.stack)
    real = x if pad is None else x[ids != pad]
    pick = {"first": lambda: real[:1], "last": lambda: real[-1:]}
    return pick.get(one.config.pooling, lambda: real.mean(0, keepdim=True))()


def _class_hidden(one: Again) -> Tensor:
    head: Any = one.walk.model.head
    x = linear(one.read(), head.hidden.weight, head.hidden.bias)
    return activation(x, one.config.classifier_activation)


def _class_logits(one: Again) -> Tensor:
    head: Any = one.walk.model.head
    return linear(one.read(), head.out.weight, head.out.bias)


def _transform(one: Again) -> Tensor:
    made: Any = one.walk.model.head.transform  # type: ignore[union-attr]
    x = linear(one.read(), made.proj.weight, made.proj.bias)
    return norm(activation(x, one.config.activation), made.norm)


def _logits(one: Again) -> Tensor:
    head: Any = one.walk.model.head
    words = one.walk.model.last_stack.embedding.weight if head.weight is None else head.weight
    x = one.whole()[one.walk.rows(one.stage.name)][one.rows] * head.scale
    bias = None if head.bias is None else head.bias[one.columns]
    return bend(linear(x, words[one.columns], bias), head.cap)


FORMULAS: dict[str, Callable[[Again], Tensor]] = {
    "tokens": lambda one: one.walk.ids(one.stage.stack)[one.rows].double(),
    "embed": _embed,
    "positions": _positions,
    "segments": _segments,
    "begin": lambda one: torch.stack([one.read(i) for i in range(len(one.stage.reads))]).sum(0),
    "add": lambda one: one.read() + one.read(1),
    "norm": lambda one: norm(one.read(), one.module),
    "norm behind": lambda one: norm(one.read(), one.module),
    "final": lambda one: norm(one.read(), one.module),
    "head norm": lambda one: norm(one.read(), one.module),
    "projected": _projected,
    "turned": _turned,
    "products": lambda one: one.read() @ one.whole(1).mT,
    "scores": lambda one: bend(one.read() * one.config.scale, one.config.attention_cap),
    "bias": _bias,
    "masked": _masked,
    "weights": lambda one: softmax(one.read()),
    "head out": lambda one: one.read() @ one.whole(1),
    "concat": _concat,
    "linear": lambda one: linear(one.read(), one.module.weight, one.module.bias),
    "activation": _activation,
    "transform": _transform,
    "pooled": _pooled,
    "class hidden": _class_hidden,
    "class logits": _class_logits,
    "logits": _logits,
    "probabilities": lambda one: softmax(one.read()),
}
