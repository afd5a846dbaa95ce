"""Numbers as the pages write them: three significant digits, with their unit.

Halves are rounded away from zero, as JavaScript does: 0.3125 is 0.313 both in a sentence of the
page and under the pointer.
"""

import math
from decimal import ROUND_HALF_UP, Context, Decimal

EXACT = Context(prec=400, rounding=ROUND_HALF_UP)
"""The largest float has 309 digits before the point."""


PASS_ERROR = 2e-6
"""Two passes in single precision may differ by this share of the largest number."""


def error_of(*numbers: float) -> float:
    """How far the difference of two such numbers, each from its own pass, may be off."""
    return PASS_ERROR * max(map(abs, numbers))


def three(value: float, error: float = 0.0) -> str:
    """Three significant digits, or fewer where the value may be off by `error`.

    Thousands are grouped, and nothing is written as 1e+03.
    """
    if math.isnan(value):
        return "no value"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    sign, size = ("−" if value < 0 else ""), abs(value)
    magnitude = math.floor(math.log10(size))
    behind = min(2, magnitude + math.floor(-math.log10(2 * error))) if error else 2
    if behind < 0:  # the error is larger than the first digit
        return "0"
    if magnitude < -5:
        mantissa = _rounded(size, behind - magnitude).scaleb(-magnitude)
        if mantissa >= 10:
            mantissa, magnitude = mantissa / 10, magnitude + 1
        return f"{sign}{mantissa:.{behind}f}e−{-magnitude}"
    rounded = _rounded(size, behind - magnitude)
    places = max(0, behind - rounded.adjusted())
    return f"{sign}{rounded:,.{places}f}"


def fixed(value: float, places: int) -> str:
    """The number with this many decimals; "no value" if it is NaN."""
    if not math.isfinite(value):
        return three(value)
    rounded = _rounded(abs(value), places)
    return f"{'−' if value < 0 and rounded else ''}{rounded:.{places}f}"


def _rounded(size: float, places: int) -> Decimal:
    """The float's exact value, rounded to `places` decimals (below 0: to tens or hundreds)."""
    return Decimal(size).quantize(Decimal(1).scaleb(-places), context=EXACT)


def weight_text(value: float) -> str:
    """The weight, or that it is almost nothing: the powers of ten of such weights say little."""
    return "< 0.001" if 0 < value < 0.001 else three(value)


def percent(share: float) -> str:
    return three(share) if math.isnan(share) else f"{three(100 * share)} %"


DISPLAY_ROUNDING = 1e-12
"""Below this a standard deviation is float64 rounding, which differs between machines."""


def spread(value: float) -> str:
    """Three significant digits, or "0 within rounding"."""
    return "0 within rounding" if value < DISPLAY_ROUNDING else three(value)


def megabytes(size: int) -> str:
    """Bytes in MB, or in kB below one MB; "0 bytes" of none."""
    if not size:
        return "0 bytes"
    return f"{three(size / 1e6)} MB" if size >= 1e6 else f"{three(size / 1e3)} kB"


def shape(sizes: tuple[int, ...]) -> str:
    return " × ".join(f"{size:,}" for size in sizes)


def signed(value: float, error: float = 0.0) -> str:
    """The same, with a plus before a positive number."""
    number = three(value, error)
    return f"+{number}" if value > 0 and number != "0" else number
