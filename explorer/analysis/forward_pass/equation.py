"""One number of a stage as an equation in LaTeX, with the numbers it is computed from."""

import math
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from explorer.text.number_format import three
from models import TransformerConfig
from models.normalization import LayerNorm, RMSNorm

LARGEST_TERMS = 2
"""The products of a sum that an equation writes out; it adds up the others."""

ACTIVATIONS = {
    "relu": r"\max(0, {x})",
    "silu": r"\frac{{x}}{1 + e^{-{x}}}",
    "gelu": r"{x} \cdot \Phi({x})",
    "gelu-tanh": r"\tfrac{1}{2}\,{x}\,\left(1 + \tanh\!\left(\sqrt{2/\pi}\,({x} + 0.044715\,{x}^3)"
    r"\right)\right)",
    "tanh": r"\tanh({x})",
}


@dataclass(frozen=True)
class Equation:
    """The right side in LaTeX, and the float64 number that it evaluates to.

    `terms` are the products that are written out: (index, x, w), the largest first.
    """

    latex: str
    total: float
    terms: tuple[tuple[int, float, float], ...] = ()

    def of(self, value: float) -> str:
        """The whole equation, with this value on its left side."""
        room = "" if self.terms else r"\rule{0pt}{2em}"
        return rf"\small{room} {number_latex(value, alone=True)} = {self.latex}"


def number_latex(value: float, alone: bool = False) -> str:
    """A number in LaTeX; in brackets where it is negative and does not stand alone."""
    if math.isnan(value):
        return r"\text{NaN}"
    digits, _, power = three(value).replace("−", "-").replace(",", "{,}").partition("e")
    digits = digits.replace("∞", r"\infty")
    latex = digits + (rf" \cdot 10^{{{power}}}" if power else "")
    return f"({latex})" if value < 0 and not alone else latex


def under(text: str, what: str) -> str:
    """A part of an equation with its name under it."""
    return rf"\underbrace{{{text}}}_{{{what}}}"


def lookup(value: float, where: str, alone: bool = True) -> Equation:
    """A number read from a table or another stage."""
    return Equation(under(number_latex(value, alone), where), value)


def addition(parts: list[float]) -> Equation:
    first, *others = parts
    return Equation(
        " + ".join([number_latex(first, alone=True), *map(number_latex, others)]), sum(parts)
    )


def dot_product(
    x: Tensor, w: Tensor, bias: float | None = None, symbols: tuple[str, str] = ("x", "w")
) -> Equation:
    """x · w + bias for x and w (n,): the largest products, the sum of the others, the bias."""
    x, w = x.double(), w.double()
    products = x * w
    order = products.abs().argsort(descending=True, stable=True)
    first, others = order[:LARGEST_TERMS].tolist(), order[LARGEST_TERMS:]
    terms = tuple((at, float(x[at]), float(w[at])) for at in first)
    left, right = symbols
    parts = [
        under(rf"{number_latex(a)} \cdot {number_latex(b)}", rf"{left}_{{{at}}} {right}_{{{at}}}")
        for at, a, b in terms
    ]
    rest = float(products[others].sum())
    if len(others):
        parts.append(under(number_latex(rest), rf"{len(others):,}\text{{ more}}"))
    if bias is not None:
        parts.append(under(number_latex(bias), "b"))
    total = sum(a * b for _, a, b in terms) + rest + (bias or 0.0)
    return Equation(" + ".join(parts), total, terms)


def softmax(logits: Tensor, column: int) -> Equation | None:
    """One probability of a row; the maximum is subtracted above and below, as the model does."""
    largest = float(logits.max())
    if not math.isfinite(largest):
        return None
    exps = (logits - largest).exp()
    logit, own, total = float(logits[column]), float(exps[column]), float(exps.sum())
    power = rf"{number_latex(logit, alone=True)} - {number_latex(largest)}"
    power = power if math.isfinite(logit) else r"-\infty"
    if len(exps) == 1:
        return Equation(rf"\frac{{e^{{{power}}}}}{{e^{{{power}}}}}", 1.0)
    others = under(number_latex(total - own), r"\text{the others, summed}")
    return Equation(rf"\frac{{e^{{{power}}}}}{{e^{{{power}}} + {others}}}", own / total)


def sigmoid(logit: Tensor) -> Equation:
    power = number_latex(-float(logit), alone=True)
    return Equation(rf"\frac{{1}}{{1 + e^{{{power}}}}}", float(logit.sigmoid()))


def soft_cap(equation: Equation, cap: float | None) -> Equation:
    """The equation bounded by ± cap, in models that have one."""
    if cap is None:
        return equation
    latex = rf"{three(cap)} \tanh\left(\frac{{1}}{{{three(cap)}}} \cdot {equation.latex}\right)"
    return Equation(latex, cap * math.tanh(equation.total / cap))


def rms_formula(x: str, width: str, config: TransformerConfig) -> str:
    size = rf"\sqrt{{\tfrac{{1}}{{{width}}}\sum {x}_i^2 + {epsilon(config)}}}"
    return rf"\gamma \odot \frac{{{x}}}{{{size}}}"


def epsilon(config: TransformerConfig) -> str:
    eps = f"{config.norm_eps:.0e}".replace("e-0", "e-")
    is_power = eps.startswith("1e") and float(eps) == config.norm_eps
    return rf"10^{{{eps.split('e')[1]}}}" if is_power else three(config.norm_eps)


def norm(x: Tensor, module: Any, column: int) -> Equation | None:
    """One number of the norm of x (d); None where the module is no norm."""
    if not isinstance(module, LayerNorm | RMSNorm):
        return None
    is_layer = isinstance(module, LayerNorm)
    mean = float(x.mean()) if is_layer else 0.0
    size = math.sqrt(float((x - mean).square().mean()) + module.eps)
    gain, number = float(module.weight[column]), float(x[column])
    above = number_latex(number, alone=True) + (f" - {number_latex(mean)}" if is_layer else "")
    latex = rf"{number_latex(gain)} \cdot \frac{{{above}}}{{{number_latex(size)}}}"
    total = gain * (number - mean) / size
    if not isinstance(module, LayerNorm):
        return Equation(latex, total)
    bias = float(module.bias[column])
    return Equation(f"{latex} + {number_latex(bias)}", total + bias)


def linear(module: Any, x: Tensor) -> Tensor:
    """The output of a linear layer for x, in float64."""
    y = module.weight.double() @ x
    return y if module.bias is None else y + module.bias.double()


def activation(x: Tensor, name: str, function: Any) -> Equation:
    inside = number_latex(float(x), alone=True)
    latex = rf"\max(0, {inside})" if name == "relu" else rf"\text{{{name}}}({inside})"
    return Equation(latex, float(function(x)))
