"""The oracle: every stage from the stages before it, by its formula written out in float64.

Nothing of the model's code for these steps is used, only its weights: a second Transformer that
the first is compared with. Only the concatenated heads are made by `head_reads`, and the stretching
of rotations for longer texts is the model's own. Rotary frequencies and the buckets of distances
are in float32, as published, or far angles and the bounds of the buckets would be others.
Shapes: t tokens, n keys, w width of one head, d width of the model.
"""

import math
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor

from explorer.analysis.forward_pass.pass_values import ALL, PassValues, Some, relative_error
from explorer.analysis.forward_pass.stage import Stage
from explorer.analysis.residual_writes import head_reads, positions_of
from models import TransformerConfig
from models.normalization import LayerNorm, RMSNorm
from models.positional import PositionalEncoding
from models.rotary import SCALINGS

WAVES = 10_000


def sinusoids(places: Tensor, width: int, halves: bool) -> Tensor:
    """(t, d): sin(pos / 10000^(2i/d)) and the cosine beside it, or behind all sines."""
    columns, sines = torch.arange(width), (width + 1) // 2
    is_cosine, pair = (columns >= sines, columns % sines) if halves else (columns % 2, columns // 2)
    angles = places[:, None].double() / WAVES ** (2 * pair.double() / width)
    return torch.where(is_cosine.bool(), angles.cos(), angles.sin())


def frequencies(config: TransformerConfig) -> Tensor:
    """(w / 2) of float32: 1 / θ^(2i/w), how far a pair is turned from one position to the next."""
    width, scaling = config.rotary_width, config.rope_scaling
    powers = torch.tensor([2 * pair for pair in range(width // 2)], dtype=torch.float32) / width
    turns = 1 / config.rope_theta**powers
    return turns if scaling is None else SCALINGS[scaling.kind](turns, scaling, config.rope_theta)


def slope(head: int, heads: int) -> float:
    """2^(−8 (h + 1) / n); of n no power of two, heads beyond the last one stand between those."""
    whole = 1 << (heads.bit_length() - 1)
    steps = head + 1 if head < whole else head - whole + 0.5
    return float(2 ** (-8 * steps / whole))


def buckets(offsets: Tensor, config: TransformerConfig, causal: bool) -> Tensor:
    """Key − query in buckets: near distances one by one, far ones by their logarithm."""
    count = config.n_buckets if causal else config.n_buckets // 2
    near = count // 2
    apart = (-offsets).clamp(min=0) if causal else offsets.abs()
    part = torch.log(apart.clamp(min=near).float() / near) / math.log(config.max_distance / near)
    far = (near + (part * (count - near)).long()).clamp(max=count - 1)
    bucket = torch.where(apart < near, apart, far)
    return bucket if causal else bucket + count * (offsets > 0)


class Again:
    """The rows of a stage by its formula, from the values of the stages it reads."""

    def __init__(self, values: PassValues, stage: Stage, rows: slice, columns: Some) -> None:
        self.values, self.stage, self.config = values, stage, values.config
        self.rows, self.columns = rows, columns

    def read(self, at: int = 0) -> Tensor:
        """The same rows of a stage that this one reads."""
        return self._value(at)[self.rows].double()

    def whole(self, at: int = 0) -> Tensor:
        return self._value(at).double()

    def _value(self, at: int) -> Tensor:
        return self.values[self.stage.reads[at]].detach()

    def projected_by(self, leaf: Any) -> Tensor:
        return linear(self.read(), leaf.weight, leaf.bias)

    @property
    def module(self) -> Any:
        return attrgetter(self.stage.module)(self.values.model)


def again(values: PassValues, stage: Stage, rows: slice = ALL, columns: Some = ALL) -> Tensor:
    """These rows of a stage, from the stages before it; of logits these columns."""
    with torch.no_grad():
        return FORMULAS[stage.kind](Again(values, stage, rows, columns))


def difference(values: PassValues, stage: Stage, rows: slice = ALL, columns: Some = ALL) -> float:
    """How far the values of the pass are from those of the formula, as a share of the largest."""
    value = values[stage.name][rows].detach()
    value = (value[:, columns] if stage.kind == "logits" else value).double()
    return relative_error(value, again(values, stage, rows, columns))


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
    rows: Tensor = one.module.weight[one.values.ids(one.stage.stack)[one.rows]].double()
    return rows * scale


def _positions(one: Again) -> Tensor:
    places = positions_of(one.values.forward, one.stage.stack)[one.rows]
    if isinstance(one.module, PositionalEncoding):
        return sinusoids(places, one.config.d_model, one.config.pairs == "halves")
    rows: Tensor = one.module.table.weight[places + one.config.position_offset]
    return rows.double()


def _projected(one: Again) -> Tensor:
    """One head's share of x W + b."""
    width = one.config.head_width
    head = one.values.head_of(len(one.module.weight) // width)
    mine = slice(head * width, (head + 1) * width)
    bias = one.module.bias
    return linear(one.read(), one.module.weight[mine], None if bias is None else bias[mine])


def _turned(one: Again) -> Tensor:
    """Every pair of numbers turned by position × its frequency; the rest is left alone."""
    config, x = one.config, one.read()
    places = positions_of(one.values.forward, one.stage.stack)[one.rows]
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
    return torch.where(one.values.mask(one.stage)[one.rows], logits, -torch.inf)


def _bias(one: Again) -> Tensor:
    """−slope × distance, or the number of the distance's bucket."""
    places, head = positions_of(one.values.forward, one.stage.stack), one.values.head
    offsets = places[None, :] - places[one.rows][:, None]
    if one.config.positions == "alibi":
        return -slope(head, one.config.n_heads) * offsets.abs().double()
    found = buckets(offsets, one.config, causal=one.stage.stack == "decoder")
    return one.module.table.weight.double()[found, head]


def _concat(one: Again) -> Tensor:
    """Every head's outputs from its own weights and values, side by side."""
    places = torch.arange(len(one.values[one.stage.reads[0]]))[one.rows]
    heads = head_reads(one.values.forward, one.stage.name.removesuffix(".concat"), places).heads
    return torch.cat(list(heads.double()), -1)


def _activation(one: Again) -> Tensor:
    inside = activation(one.read(), one.config.activation)
    return inside * one.read(1) if len(one.stage.reads) > 1 else inside


def _pooled(one: Again) -> Tensor:
    x, pad = one.whole(), one.config.pad_id
    real = x if pad is None else x[one.values.ids(one.stage.stack) != pad]
    pick = {"first": lambda: real[:1], "last": lambda: real[-1:]}
    return pick.get(one.config.pooling, lambda: real.mean(0, keepdim=True))()


def _class_hidden(one: Again) -> Tensor:
    head: Any = one.values.model.head
    return activation(one.projected_by(head.hidden), one.config.classifier_activation)


def _transform(one: Again) -> Tensor:
    made: Any = one.values.model.head.transform
    return norm(activation(one.projected_by(made.proj), one.config.activation), made.norm)


def _logits(one: Again) -> Tensor:
    head: Any = one.values.model.head
    words = one.values.model.last_stack.embedding.weight if head.weight is None else head.weight
    x = one.whole()[one.values.rows(one.stage.name)][one.rows] * head.scale
    bias = None if head.bias is None else head.bias[one.columns]
    return bend(linear(x, words[one.columns], bias), head.cap)


def _probabilities(one: Again) -> Tensor:
    """The sigmoid of each logit where every label is by itself."""
    x = one.read()
    is_own = one.config.problem_type == "multi_label_classification"
    return 1 / (1 + (-x).exp()) if is_own else softmax(x)


def _row_scale(one: Again) -> Tensor:
    """The share of the keys in e^s with the sink beside them, times the gate."""
    block = getattr(one.values.model, one.stage.stack).blocks[one.stage.layer]
    rows, head, scale = getattr(block, one.stage.branch).rows, one.values.head, torch.ones(1)
    for at, name in enumerate(one.stage.reads):
        if name.endswith(".masked"):
            keys = one.read(at).exp().sum(-1, keepdim=True)
            scale = scale * keys / (keys + rows.bias[head].detach().double().exp())
        else:
            product = one.read(at) @ rows.gate.weight[head].detach().double()
            scale = scale / (1 + (-product[:, None]).exp())
    return scale


NORMS = ("norm", "output norm", "stream norm", "final norm", "head norm")
PROJECTIONS = ("output projection", "gate", "up", "down")
FORMULAS: dict[str, Callable[[Again], Tensor]] = {
    "tokens": lambda one: one.values.ids(one.stage.stack)[one.rows].double(),
    "embedding": _embed,
    "positions": _positions,
    "segments": lambda one: one.module.weight.double()[
        one.values.segments(one.stage.stack)[one.rows]
    ],
    "sum": lambda one: torch.stack([one.read(i) for i in range(len(one.stage.reads))]).sum(0),
    "add": lambda one: one.read() + one.read(1),
    **dict.fromkeys(NORMS, lambda one: norm(one.read(), one.module)),
    "projected": _projected,
    "rotated": _turned,
    "products": lambda one: one.read() @ one.whole(1).mT,
    "scores": lambda one: bend(one.read() * one.config.scale, one.config.attention_cap),
    "bias": _bias,
    "masked": _masked,
    "row scale": _row_scale,
    "weights": lambda one: softmax(one.read()) * (one.read(1) if len(one.stage.reads) > 1 else 1),
    "head out": lambda one: one.read() @ one.whole(1),
    "concat": _concat,
    **dict.fromkeys(PROJECTIONS, lambda one: one.projected_by(one.module)),
    "activation": _activation,
    "transform": _transform,
    "pooled": _pooled,
    "class hidden": _class_hidden,
    "class logits": lambda one: one.projected_by(one.values.model.head.out),
    "logits": _logits,
    "probabilities": _probabilities,
}
