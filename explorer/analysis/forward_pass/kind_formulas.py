"""What several kinds of stage share: symbols, formulas, equations, the norm and the softmax."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor

from explorer.analysis.forward_pass.equation import (
    Equation,
    dot_product,
    number_latex,
    softmax,
)
from explorer.analysis.forward_pass.stage_kind import (
    SQUARE,
    Inputs,
    Kind,
    Stage,
)
from explorer.text.number_format import three
from models import TransformerConfig
from models.normalization import LayerNorm, RMSNorm

ACTIVATIONS = {
    "relu": r"\max(0, {x})",
    "silu": r"\frac{{x}}{1 + e^{-{x}}}",
    "gelu": r"{x} \cdot \Phi({x})",
    "gelu-tanh": r"\tfrac{1}{2}\,{x}\,\left(1 + \tanh\!\left(\sqrt{2/\pi}\,({x} + 0.044715\,{x}^3)"
    r"\right)\right)",
    "tanh": r"\tanh({x})",
}
SYMBOLS = {
    "norm": "y",
    "final": "y",
    "concat": "H",
    "hidden": "h",
    "pooled": "c",
    "transform": "c",
    "out_norm": "z",
}


def symbol_of(name: str, config: TransformerConfig) -> str:
    """The symbol of a stage in its own formula and in those of the stages that read it."""
    if name == "encoder.final" and config.kind == "encoder-decoder":
        return "m"
    return SYMBOLS.get(name.split(".")[-1], "x")


def symbol_read(stage: Stage, config: TransformerConfig) -> str:
    """The symbol of what a stage reads; cross-attention reads its keys from the memory m."""
    if stage.branch == "cross_attn" and not stage.reads[0].startswith(f"{stage.stack}."):
        return "m"
    return symbol_of(stage.reads[0], config)


def rms_formula(x: str, width: str, config: TransformerConfig) -> str:
    size = rf"\sqrt{{\tfrac{{1}}{{{width}}}\sum {x}_i^2 + {epsilon(config)}}}"
    return rf"\gamma \odot \frac{{{x}}}{{{size}}}"


def epsilon(config: TransformerConfig) -> str:
    eps = f"{config.norm_eps:.0e}".replace("e-0", "e-")
    is_power = eps.startswith("1e") and float(eps) == config.norm_eps
    return rf"10^{{{eps.split('e')[1]}}}" if is_power else three(config.norm_eps)


def normed(x: Tensor, module: Any, column: int) -> Equation | None:
    """One number of the norm of x (d); None where the module is no norm."""
    if not isinstance(module, LayerNorm | RMSNorm):
        return None
    is_layer = isinstance(module, LayerNorm)
    mean = float(x.mean()) if is_layer else 0.0
    size = math.sqrt(float((x - mean).square().mean()) + module.eps)
    gain, one = float(module.weight[column]), float(x[column])
    above = number_latex(one, alone=True) + (f" - {number_latex(mean)}" if is_layer else "")
    latex = rf"{number_latex(gain)} \cdot \frac{{{above}}}{{{number_latex(size)}}}"
    total = gain * (one - mean) / size
    if not isinstance(module, LayerNorm):
        return Equation(latex, total)
    bias = float(module.bias[column])
    return Equation(f"{latex} + {number_latex(bias)}", total + bias)


def projected(inputs: Inputs, module: Any, row: int) -> Equation:
    """One number of a linear map: what is read times one row of the weight."""
    bias = None if module.bias is None else float(module.bias[row])
    symbols = symbol_read(inputs.stage, inputs.config), "w"
    return dot_product(inputs.read()[0], module.weight[row], bias, symbols)


def activated(x: Tensor, name: str, activation: Any) -> Equation:
    inside = number_latex(float(x), alone=True)
    latex = rf"\max(0, {inside})" if name == "relu" else rf"\text{{{name}}}({inside})"
    return Equation(latex, float(activation(x)))


class Norm(Kind):
    def __init__(self, title: str, text: str, recorded: bool = False) -> None:
        self.title, self.text, self.recorded = title, text, recorded

    def formula(self, stage: Stage, config: TransformerConfig) -> str:
        made = symbol_of(stage.name, config)
        x = "z" if made == "z" else "x"
        start = rf"{made} \leftarrow" if made == x else f"{made} ="
        if config.norm == "rms":
            return f"{start} {rms_formula(x, 'd', config)}"
        size = rf"\sqrt{{\sigma^2 + {epsilon(config)}}}"
        return rf"{start} \gamma \odot \frac{{{x} - \mu}}{{{size}}} + \beta"

    def equation(self, inputs: Inputs) -> Equation | None:
        return normed(inputs.read()[0], inputs.module, inputs.column)


class Softmax(Kind):
    shapes = SQUARE

    def equation(self, inputs: Inputs) -> Equation | None:
        return softmax(inputs.read()[0], inputs.column)
