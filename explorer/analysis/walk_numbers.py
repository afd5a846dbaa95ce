"""The formula of a stage with the numbers of one of its cells, where it is no long sum.

In float64, from the values of the stages that the stage reads, like `walk_again`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.analysis.walk_again import activation
from explorer.analysis.walk_line import Stage
from explorer.analysis.walk_sum import bare
from explorer.analysis.walk_values import Walk
from models.normalization import LayerNorm, RMSNorm


@dataclass(frozen=True)
class Made:
    """The right side of the equation, and what it gives."""

    latex: str
    total: float


def in_numbers(walk: Walk, stage: Stage, row: int, column: int) -> Made | None:
    """The number in this row and column of the stage's values, by the stage's formula."""
    if stage.kind not in NUMBERS:
        return None
    with torch.no_grad():
        read = [walk[name].detach()[row].double() for name in stage.reads]
        return NUMBERS[stage.kind](walk, stage, read, column)


def equation(made: Made, value: float) -> str:
    return rf"\small\rule{{0pt}}{{2em}} {bare(value, alone=True)} = {made.latex}"


def _added(walk: Walk, stage: Stage, read: list[Tensor], column: int) -> Made:
    parts = [float(each[column]) for each in read]
    first, *others = parts
    return Made(" + ".join([bare(first, alone=True), *map(bare, others)]), sum(parts))


def _scaled(walk: Walk, stage: Stage, read: list[Tensor], column: int) -> Made | None:
    if walk.config.attention_cap is not None:
        return None
    product, scale, width = float(read[0][column]), walk.config.scale, walk.config.head_width
    made = rf"{bare(scale, alone=True)} \cdot {bare(product)}"
    if math.isclose(scale, width**-0.5):
        made = rf"\frac{{{bare(product, alone=True)}}}{{\sqrt{{{width}}}}}"
    return Made(made, product * scale)


def _share(walk: Walk, stage: Stage, read: list[Tensor], column: int) -> Made | None:
    """The largest is taken off above and below, as the model does it: the share is the same."""
    logits = read[0]
    if not logits[column].isfinite():
        return None
    largest = float(logits.max())
    raised = (logits - largest).exp()
    above = f"e^{{{bare(float(logits[column]), alone=True)} - {bare(largest)}}}"
    total = float(raised.sum())
    below = rf"\underbrace{{{bare(total)}}}_{{\text{{the same, summed}}}}"
    return Made(rf"\frac{{{above}}}{{{below}}}", float(raised[column]) / total)


def _normed(walk: Walk, stage: Stage, read: list[Tensor], column: int) -> Made | None:
    module, x = walk.module(stage), read[0]
    if not isinstance(module, LayerNorm | RMSNorm):
        return None
    mean = float(x.mean()) if isinstance(module, LayerNorm) else 0.0
    size = math.sqrt(float((x - mean).square().mean()) + module.eps)
    gain, one = float(module.weight[column]), float(x[column])
    above, total = bare(one, alone=True), gain * (one - mean) / size
    if isinstance(module, LayerNorm):
        above += f" - {bare(mean)}"
    made = rf"{bare(gain)} \cdot \frac{{{above}}}{{{bare(size)}}}"
    if isinstance(module, LayerNorm):
        bias = float(module.bias[column])
        return Made(f"{made} + {bare(bias)}", total + bias)
    return Made(made, total)


def _active(walk: Walk, stage: Stage, read: list[Tensor], column: int) -> Made:
    name = walk.config.activation
    inside = bare(float(read[0][column]), alone=True)
    made = rf"\max(0, {inside})" if name == "relu" else rf"\text{{{name}}}({inside})"
    total = float(activation(read[0][column], name))
    if len(read) > 1:
        return Made(rf"{made} \cdot {bare(float(read[1][column]))}", total * float(read[1][column]))
    return Made(made, total)


NUMBERS: dict[str, Callable[[Walk, Stage, list[Tensor], int], Made | None]] = {
    "begin": _added,
    "add": _added,
    "scores": _scaled,
    "weights": _share,
    "probabilities": _share,
    "norm": _normed,
    "norm behind": _normed,
    "final": _normed,
    "activation": _active,
}
