"""The formula of a stage with the numbers of one of its cells, where it is no long sum.

In float64, from the values of the stages that the stage reads, like `walk_again`. What comes
before attention, its bias and what stands in pairs is in `walk_looked_up`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from explorer.analysis.forward_pass.latex import bare, under
from explorer.analysis.forward_pass.lookups import LOOKED_UP
from explorer.analysis.forward_pass.recompute import activation, bend, linear
from explorer.analysis.forward_pass.stage_cell import Cell, Made
from explorer.analysis.forward_pass.stage_line import Stage
from explorer.analysis.forward_pass.stage_values import Walk
from explorer.analysis.forward_pass.sum_terms import factors
from explorer.text.number_format import three
from models.normalization import LayerNorm, RMSNorm


def in_numbers(walk: Walk, stage: Stage, row: int, column: int) -> Made | None:
    """The number in this row and column of the stage's values, by the stage's formula."""
    if stage.kind not in NUMBERS:
        return None
    with torch.no_grad():
        return NUMBERS[stage.kind](Cell(walk, stage, row, column))


def equation(made: Made, value: float) -> str:
    return rf"\small\rule{{0pt}}{{2em}} {bare(value, alone=True)} = {made.latex}"


def _added(cell: Cell) -> Made:
    parts = [float(cell.read(at)[cell.column]) for at in range(len(cell.stage.reads))]
    first, *others = parts
    return Made(" + ".join([bare(first, alone=True), *map(bare, others)]), sum(parts))


def _scaled(cell: Cell) -> Made:
    product, config = float(cell.read()[cell.column]), cell.walk.config
    made = rf"{bare(config.scale, alone=True)} \cdot {bare(product)}"
    if math.isclose(config.scale, config.head_width**-0.5):
        made = rf"\frac{{{bare(product, alone=True)}}}{{\sqrt{{{config.head_width}}}}}"
    return _bent(Made(made, product * config.scale), config.attention_cap)


def _bent(made: Made, cap: float | None) -> Made:
    """Towards a bound, in models that have one."""
    if cap is None:
        return made
    latex = rf"{three(cap)} \tanh\left(\frac{{1}}{{{three(cap)}}} \cdot {made.latex}\right)"
    return Made(latex, float(bend(torch.tensor(made.total, dtype=torch.float64), cap)))


def _masked(cell: Cell) -> Made:
    if not cell.walk.mask(cell.stage)[cell.row, cell.column]:
        return Made(r"-\infty \quad \text{this key may not be looked at}", -math.inf)
    if len(cell.stage.reads) > 1:
        return _added(cell)
    score = float(cell.read()[cell.column])
    allowed = rf"s_{{{cell.row}\,{cell.column}}} \text{{, may be looked at}}"
    return Made(under(bare(score, alone=True), allowed), score)


def _share(cell: Cell) -> Made | None:
    """The largest is taken off above and below, as the model does it: the share is the same."""
    logits = cell.read()
    largest = float(logits.max())
    if not math.isfinite(largest):
        return None
    raised = (logits - largest).exp()
    logit = float(logits[cell.column])
    power = f"{bare(logit, alone=True)} - {bare(largest)}" if math.isfinite(logit) else r"-\infty"
    own, total = float(raised[cell.column]), float(raised.sum())
    if len(raised) == 1:
        return Made(rf"\frac{{e^{{{power}}}}}{{e^{{{power}}}}}", 1.0)
    others = under(bare(total - own), r"\text{the others, summed}")
    return Made(rf"\frac{{e^{{{power}}}}}{{e^{{{power}}} + {others}}}", own / total)


def _normed(cell: Cell) -> Made | None:
    return _by_norm(cell.read(), cell.module, cell.column)


def _by_norm(x: Tensor, module: Any, column: int) -> Made | None:
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


def _active(cell: Cell) -> Made:
    made = _activated(cell.read()[cell.column], cell.walk.config.activation)
    if len(cell.stage.reads) > 1:
        factor = float(cell.read(1)[cell.column])
        return Made(rf"{made.latex} \cdot {bare(factor)}", made.total * factor)
    return made


def _activated(x: Tensor, name: str) -> Made:
    inside = bare(float(x), alone=True)
    latex = rf"\max(0, {inside})" if name == "relu" else rf"\text{{{name}}}({inside})"
    return Made(latex, float(activation(x, name)))


def _class_hidden(cell: Cell) -> Made:
    hidden: Any = cell.walk.model.head.hidden  # type: ignore[union-attr]
    x = linear(cell.read(), hidden.weight, hidden.bias)
    return _activated(x[cell.column], cell.walk.config.classifier_activation)


def _transformed(cell: Cell) -> Made | None:
    transform: Any = cell.walk.model.head.transform  # type: ignore[union-attr]
    x = linear(cell.read(), transform.proj.weight, transform.proj.bias)
    active = activation(x, cell.walk.config.activation)
    return _by_norm(active, transform.norm, cell.column)


def _capped_logit(cell: Cell) -> Made:
    """Without a cap, a logit is a sum."""
    found = factors(cell.walk, cell.stage, cell.row, cell.column)
    total = float(found.x.double() @ found.w.double()) + (found.bias or 0.0)
    return _bent(Made(bare(total, alone=True), total), cell.walk.config.logit_cap)


NUMBERS: dict[str, Callable[[Cell], Made | None]] = {
    **LOOKED_UP,
    "begin": _added,
    "add": _added,
    "scores": _scaled,
    "masked": _masked,
    "weights": _share,
    "probabilities": _share,
    "norm": _normed,
    "norm behind": _normed,
    "final": _normed,
    "head norm": _normed,
    "activation": _active,
    "class hidden": _class_hidden,
    "transform": _transformed,
    "logits": _capped_logit,
}
