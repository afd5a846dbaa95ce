"""One number of a stage as the sum that it is: what is read times what it is weighed with.

In float64, from the values of the stages that the stage reads, like `walk_again`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from explorer.analysis.forward_pass.formulas import symbol_read
from explorer.analysis.forward_pass.latex import bare, under
from explorer.analysis.forward_pass.stage_line import Stage
from explorer.analysis.forward_pass.stage_values import Walk
from models import TransformerConfig

TERMS = 2
"""Products that stand by themselves; the others are added up."""


@dataclass(frozen=True)
class Factors:
    """x · w + b: `x` and `w` (n,), and the bias, or none."""

    x: Tensor
    w: Tensor
    bias: float | None = None


@dataclass(frozen=True)
class Sum:
    """The places and factors of the largest products, the sum of the `others`, and the bias."""

    terms: tuple[tuple[int, float, float], ...]
    others: int
    rest: float
    bias: float | None

    @property
    def total(self) -> float:
        return sum(x * w for _, x, w in self.terms) + self.rest + (self.bias or 0.0)


def as_sum(walk: Walk, stage: Stage, row: int, column: int) -> Sum | None:
    """The number in this row and column of the stage's values, where it is such a sum."""
    if stage.kind not in FACTORS or (stage.kind == "logits" and walk.config.logit_cap is not None):
        return None
    found = factors(walk, stage, row, column)
    x, w = found.x.double(), found.w.double()
    products = x * w
    order = products.abs().argsort(descending=True, stable=True)
    first, others = order[:TERMS].tolist(), order[TERMS:]
    terms = tuple((at, float(x[at]), float(w[at])) for at in first)
    return Sum(terms, len(others), float(products[others].sum()), found.bias)


def factors(walk: Walk, stage: Stage, row: int, column: int) -> Factors:
    """What is multiplied and added up for this cell, of a kind in `FACTORS`."""
    with torch.no_grad():
        return FACTORS[stage.kind](walk, stage, row, column)


SYMBOLS = {"products": ("q", "k"), "head out": ("a", "v")}


def in_latex(found: Sum, stage: Stage, config: TransformerConfig, value: float) -> str:
    """The value as its sum, each number to three digits and with what it is under it."""
    x, w = SYMBOLS.get(stage.kind) or (symbol_read(stage, config), "w")
    parts = [
        under(rf"{bare(left)} \cdot {bare(right)}", rf"{x}_{{{at}}} {w}_{{{at}}}")
        for at, left, right in found.terms
    ]
    if found.others:
        parts.append(under(bare(found.rest), rf"{found.others:,}\text{{ more}}"))
    if found.bias is not None:
        parts.append(under(bare(found.bias), "b"))
    return rf"\small {bare(value, alone=True)} = " + " + ".join(parts)


def _read(walk: Walk, stage: Stage, at: int = 0) -> Tensor:
    return walk[stage.reads[at]].detach()


def _line(x: Tensor, weight: Tensor, bias: Tensor | None, column: int) -> Factors:
    return Factors(x, weight[column], None if bias is None else float(bias[column]))


def _linear(walk: Walk, stage: Stage, row: int, column: int) -> Factors:
    made = walk.module(stage)
    return _line(_read(walk, stage)[row], made.weight, made.bias, column)


def _projected(walk: Walk, stage: Stage, row: int, column: int) -> Factors:
    """The column counts within the head that is shown."""
    made, width = walk.module(stage), walk.config.head_width
    first = width * walk.head_of(stage, len(made.weight) // width)
    return _line(_read(walk, stage)[row], made.weight, made.bias, first + column)


def _class_logits(walk: Walk, stage: Stage, row: int, column: int) -> Factors:
    out: Any = walk.model.head.out  # type: ignore[union-attr]
    return _line(_read(walk, stage)[row], out.weight, out.bias, column)


def _logits(walk: Walk, stage: Stage, row: int, column: int) -> Factors:
    head: Any = walk.model.head
    words = walk.model.last_stack.embedding.weight if head.weight is None else head.weight
    x = _read(walk, stage)[walk.rows(stage.name)[row]].double() * head.scale
    return _line(x, words, head.bias, column)


FACTORS: dict[str, Callable[[Walk, Stage, int, int], Factors]] = {
    "linear": _linear,
    "projected": _projected,
    "products": lambda walk, stage, row, column: Factors(
        _read(walk, stage)[row], _read(walk, stage, 1)[column]
    ),
    "head out": lambda walk, stage, row, column: Factors(
        _read(walk, stage)[row], _read(walk, stage, 1)[:, column]
    ),
    "class logits": _class_logits,
    "logits": _logits,
}
