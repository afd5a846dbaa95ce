"""One number of a stage as an equation in LaTeX, with the numbers it is computed from."""

import math
from dataclasses import dataclass

from torch import Tensor

from explorer.text.number_format import three

LARGEST_TERMS = 2
"""Products of a sum that are written out; the others are added up."""


@dataclass(frozen=True)
class Equation:
    """The right side in LaTeX and what it evaluates to, in float64.

    `terms` are the products of a sum that are written out: (index, x, w), the largest first.
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
    made = digits + (rf" \cdot 10^{{{power}}}" if power else "")
    return f"({made})" if value < 0 and not alone else made


def under(text: str, what: str) -> str:
    """A part of an equation with its name under it."""
    return rf"\underbrace{{{text}}}_{{{what}}}"


def looked_up(value: float, where: str) -> Equation:
    """A number as it stands in a table or another stage."""
    return Equation(under(number_latex(value, alone=True), where), value)


def added(parts: list[float]) -> Equation:
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


def capped(made: Equation, cap: float | None) -> Equation:
    """Bounded by ± cap, in models that have one."""
    if cap is None:
        return made
    latex = rf"{three(cap)} \tanh\left(\frac{{1}}{{{three(cap)}}} \cdot {made.latex}\right)"
    return Equation(latex, cap * math.tanh(made.total / cap))
