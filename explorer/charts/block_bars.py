"""A number of every part of a model, one under another; on a logarithmic axis as points."""

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import altair as alt

from explorer.charts.fill import Spec, filled_chart, written
from explorer.charts.frame import MIDDLE, fixed, framed_spec, scale_ends, text_line

BAR_ROW, AROUND_BARS = 24, 52
"""Pixels of a row, and of the axis below."""
WIDEST_BLOCK_NAME = 270


def height_of(names: Sequence[str]) -> int:
    return BAR_ROW * len(names) + AROUND_BARS


def block_bars(names: Sequence[str], values: Sequence[float], unit: str) -> Spec:
    """A bar from zero for each, in the order they come."""
    top = max([value for value in values if math.isfinite(value)], default=0.0) or 1.0
    tables = {"blocks": _rows(names, values)}
    return filled_chart(_bars(unit), tables, **scale_ends("x", 0.0, top))


def block_points(names: Sequence[str], values: Sequence[float], unit: str, rule: float) -> Spec:
    """A point for each on a logarithmic axis, and a rule at a number to compare them with."""
    known = [value for value in values if math.isfinite(value) and value > 0]
    powers = [math.log10(value) for value in [*known, rule]]
    ends = scale_ends("x", 10 ** (min(powers) - 0.3), 10 ** (max(powers) + 0.3))
    rows = [row for row in _rows(names, values) if (row["value"] or 0) > 0]
    return filled_chart(_points(unit), {"blocks": rows, "rule": [{"rule": rule}]}, **ends)


def _rows(names: Sequence[str], values: Sequence[float]) -> list[dict[str, Any]]:
    return [
        {
            "block": name,
            "value": value if math.isfinite(value) else None,
            "number": written(value, 6),
        }
        for name, value in zip(names, values, strict=True)
    ]


def _y() -> alt.Y:
    return alt.Y("block:N", sort=None, title=None, axis=alt.Axis(labelLimit=WIDEST_BLOCK_NAME))


@cache
def _bars(unit: str) -> Spec:
    bars = (
        alt.Chart(alt.NamedData("blocks"))
        .mark_bar(cornerRadiusEnd=2, height=alt.RelativeBandSize(band=0.6))
        .encode(
            y=_y(),
            x=alt.X("value:Q", title=unit, scale=fixed("x", zero=True)),
            tooltip=[text_line("block"), text_line("number", unit)],
        )
    )
    return framed_spec(alt.layer(bars))


@cache
def _points(unit: str) -> Spec:
    scale = fixed("x", zero=None, type="log")
    axis = alt.Axis(format="~g", values=[n * 10.0**at for at in range(-12, 4) for n in (1, 2, 5)])
    points = (
        alt.Chart(alt.NamedData("blocks"))
        .mark_point(filled=True, size=70, opacity=1)
        .encode(
            y=_y(),
            x=alt.X("value:Q", title=unit, scale=scale, axis=axis),
            tooltip=[text_line("block"), text_line("number", unit)],
        )
    )
    rule = (
        alt.Chart(alt.NamedData("rule"))
        .mark_rule(strokeDash=[4, 4], color=MIDDLE)
        .encode(x=alt.X("rule:Q", title=unit, scale=scale, axis=axis))
    )
    return framed_spec(alt.layer(rule, points))
