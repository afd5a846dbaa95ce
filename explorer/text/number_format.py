"""Numbers as the pages write them: three significant digits, with their unit."""

from __future__ import annotations

import math


def three(value: float) -> str:
    """Three significant digits; thousands are grouped, and nothing is written as 1e+03."""
    if math.isnan(value):
        return "no value"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    sign, size = ("−" if value < 0 else ""), abs(value)
    magnitude = math.floor(math.log10(size))
    if magnitude < -5:
        return f"{sign}{size:.2e}".replace("e-0", "e−").replace("e-", "e−")
    rounded = round(size, 2 - magnitude)
    places = max(0, 2 - math.floor(math.log10(rounded)))
    return f"{sign}{rounded:,.{places}f}"


ROUNDING = 1e-12
"""Below this a standard deviation is float64 rounding, which differs between machines."""


def spread(value: float) -> str:
    """Three significant digits, or that it is 0 but for rounding."""
    return "0 within rounding" if value < ROUNDING else three(value)


def megabytes(size: int) -> str:
    """Bytes in MB, or in kB where they are few."""
    return f"{three(size / 1e6)} MB" if size >= 1e6 or not size else f"{three(size / 1e3)} kB"


def shape(sizes: tuple[int, ...]) -> str:
    return " × ".join(f"{size:,}" for size in sizes)
