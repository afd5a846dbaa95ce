"""Numbers as the equations of the whole pass write them."""

from __future__ import annotations

import math

from explorer.text.number_format import three


def bare(value: float, alone: bool = False) -> str:
    """A number in LaTeX; in brackets where it is negative and does not stand alone."""
    if math.isnan(value):
        return r"\text{NaN}"
    digits, _, power = three(value).replace("−", "-").replace(",", "{,}").partition("e")
    digits = digits.replace("∞", r"\infty")
    made = digits + (rf" \cdot 10^{{{power}}}" if power else "")
    return f"({made})" if value < 0 and not alone else made


def under(text: str, what: str) -> str:
    """A part of an equation with what it is written under it."""
    return rf"\underbrace{{{text}}}_{{{what}}}"
