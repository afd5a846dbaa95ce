"""Curves over positions: dimensions of a table, products by distance, biases of heads, hands."""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Literal

import altair as alt

from explorer.charts.fill import Spec, filled_chart, finite
from explorer.charts.frame import (
    MIDDLE,
    around_zero,
    fixed,
    framed_spec,
    number_line,
    ruler,
    scale_ends,
    text_line,
)

MOST_NAMED_CURVES = 8
"""The legend names at most this many heads; the tooltip names every one."""
THICK = 4
"""Pixels of the chosen head's line."""
ROOM_FOR_TEXT = 0.12
"""The share of a chart's height that stays free for the text at its top."""
CLOCK, CLOCKS_A_LINE = 130, 6
"""Pixels of a clock with the room around it, and how many stand in a line."""
ACROSS, DOWN = 2.5, 2.9
"""The same room in lengths of a hand."""
QUERY_MINUS_KEY = "query's position − key's"


def wave_curves(rows: Sequence[Mapping[str, float | str]], beside: Iterable[float] = ()) -> Spec:
    """Lines over positions; a row has `position`, `value` and `dimension`.

    The axis holds the values `beside` too, those of a chart that is compared with this one.
    """
    last = max((float(row["position"]) for row in rows), default=1.0)
    around = around_zero([*beside, *(float(row["value"]) for row in rows)])
    table = [{**row, "value": finite(float(row["value"]))} for row in rows]
    return filled_chart(
        _waves(), {"rows": table}, **scale_ends("x", 0, last), **scale_ends("y", *around)
    )


def offset_curve(
    rows: Sequence[tuple[int, float, float, float]], unit: str, beside: Iterable[float] = ()
) -> Spec:
    """The mean over all pairs of one distance, in the band of the smallest and the largest.

    A row has the distance, the smallest, the mean and the largest. The axis holds the values
    `beside` too.
    """
    names = ("offset", "smallest", "mean", "largest")
    table = [dict(zip(names, (row[0], *map(finite, row[1:])), strict=True)) for row in rows]
    around = around_zero([*beside, *(number for row in rows for number in row[1:])])
    axes = scale_ends("x", 0, len(rows) - 1) | scale_ends("y", *around)
    return filled_chart(_offsets(unit), {"rows": table}, **axes)


def head_curves(
    rows: Sequence[tuple[str, int, float]],
    unit: str,
    thick: str = "",
    beside: Iterable[float] = (),
) -> Spec:
    """A line for each head over the distance of query and key; a row has head, distance, value.

    The line of the head `thick` is drawn thicker. The axis holds the values `beside` too.
    """
    table = [{"head": head, "offset": at, "value": finite(value)} for head, at, value in rows]
    offsets = [row[1] for row in rows] or [0]
    heads = list(dict.fromkeys(row[0] for row in rows))
    axes = scale_ends("x", min(offsets), max(*offsets, 1)) | scale_ends(
        "y", *around_zero([*beside, *(r[2] for r in rows)])
    )
    spec = _heads(unit, len(heads) <= MOST_NAMED_CURVES)
    return filled_chart(spec, {"rows": table}, heads=heads, thick=thick, **axes)


def position_curve(values: Sequence[float], trained: int, unit: str) -> Spec:
    """A value at each position of a long text; a rule marks the trained length."""
    rows = [
        {"position": position, "value": value}
        for position, value in enumerate(values)
        if math.isfinite(value)
    ]
    low, high = around_zero(row["value"] for row in rows)
    axes = scale_ends("x", 0, max(len(values) - 1, 1)) | scale_ends(
        "y", low, high + ROOM_FOR_TEXT * (high - low)
    )
    border = [{"position": trained, "text": "longer than in training →"}]
    return filled_chart(_positions(unit), {"rows": rows, "border": border}, **axes)


def rotation_clocks(
    hands: Sequence[tuple[str, Sequence[tuple[float, float]]]], position: int
) -> Spec:
    """A clock for each pair of dimensions: its hand at a position, dots at those before.

    `hands` are names and tips (x, y) at every position; a clock's radius is its longest hand.
    """
    tips, circles = [], []
    for index, (name, points) in enumerate(hands):
        lengths = [math.hypot(*point) for point in points]
        longest = max(filter(math.isfinite, lengths), default=0.0) or 1.0
        line, column = divmod(index, CLOCKS_A_LINE)
        middle_x, middle_y = ACROSS * (column + 0.5), -DOWN * line
        circles.append({"x": middle_x, "y": middle_y, "low": middle_y - 1.28, "pair": name})
        tips += [
            {
                "x": middle_x + right / longest,
                "y": middle_y + up / longest,
                "middle_x": middle_x,
                "middle_y": middle_y,
                "pair": name,
                "position": step,
                "first": right,
                "second": up,
                "now": step == position,
            }
            for step, (right, up) in enumerate(points[: position + 1])
            if math.isfinite(right + up)
        ]
    lines, a_line = -(-len(hands) // CLOCKS_A_LINE), min(max(len(hands), 1), CLOCKS_A_LINE)
    size = {"width": CLOCK * a_line, "height": CLOCK * 1.16 * lines}
    axes = scale_ends("x", 0, ACROSS * a_line) | scale_ends("y", 1.3 - DOWN * lines, 1.3)
    return filled_chart(_clocks(), {"tips": tips, "circles": circles}, **axes) | size


@cache
def _waves() -> Spec:
    x = alt.X("position:Q", title="position", scale=fixed("x"))
    curve = (
        alt.Chart()
        .mark_line(interpolate="monotone", point=alt.OverlayMarkDef(size=18))
        .encode(
            x=x,
            y=alt.Y("value:Q", title="value", scale=fixed("y")),
            color=alt.Color("dimension:N", sort=None),
            # Colour is never the only sign: the second of a pair is dashed.
            strokeDash=alt.StrokeDash("dimension:N", sort=None),
        )
    )
    tooltip = [text_line("dimension"), number_line("position", places=0), number_line("value")]
    return framed_spec(alt.layer(curve, ruler(x, "position", tooltip), data=alt.NamedData("rows")))


@cache
def _offsets(unit: str) -> Spec:
    x = alt.X("offset:Q", title="distance of the two positions", scale=fixed("x"))
    y: dict[str, Any] = {"title": unit, "scale": fixed("y")}
    band = alt.Chart().mark_area(opacity=0.18)
    mean = alt.Chart().mark_line(point=alt.OverlayMarkDef(size=18))
    tooltip = [
        number_line("offset", "distance", 0),
        *map(number_line, ("smallest", "mean", "largest")),
    ]
    layers = (
        band.encode(x=x, y=alt.Y("smallest:Q", **y), y2="largest"),
        mean.encode(x=x, y=alt.Y("mean:Q", **y)),
        ruler(x, "offset", tooltip),
    )
    return framed_spec(alt.layer(*layers, data=alt.NamedData("rows")))


@cache
def _heads(unit: str, named: bool) -> Spec:
    x = alt.X("offset:Q", title=QUERY_MINUS_KEY, scale=fixed("x"))
    heads = alt.Scale(domain=alt.ExprRef("heads"))
    legend: dict[str, Any] = {} if named else {"legend": None}
    drawn: dict[str, Any] = {
        "x": x,
        "y": alt.Y("value:Q", title=unit, scale=fixed("y")),
        "color": alt.Color("head:N", sort=None, scale=heads, **legend),
    }
    interpolate: Literal["step", "linear"] = "step" if unit == "bucket" else "linear"
    every = alt.Chart().mark_line(interpolate=interpolate).encode(**drawn)
    chosen = (
        alt.Chart()
        .mark_line(interpolate=interpolate, strokeWidth=THICK)
        .encode(**drawn)
        .transform_filter("datum.head === thick")
    )
    tooltip = [text_line("head"), number_line("offset", "distance", 0), number_line("value", unit)]
    layers = every, chosen, ruler(x, "offset", tooltip)
    return framed_spec(alt.layer(*layers, data=alt.NamedData("rows")))


@cache
def _positions(unit: str) -> Spec:
    x = alt.X("position:Q", title="position", scale=fixed("x"))
    curve = alt.Chart().mark_line().encode(x=x, y=alt.Y("value:Q", title=unit, scale=fixed("y")))
    border = alt.Chart(alt.NamedData("border"))
    rule = border.mark_rule(strokeDash=[4, 3], color=MIDDLE).encode(x=x)
    text = border.mark_text(align="left", dx=6, y=8, color=MIDDLE).encode(x=x, text="text:N")
    tooltip = [number_line("position", places=0), number_line("value", unit)]
    layers = curve, rule, text, ruler(x, "position", tooltip)
    return framed_spec(alt.layer(*layers, data=alt.NamedData("rows")))


@cache
def _clocks() -> Spec:
    across: dict[str, Any] = {"axis": None, "scale": fixed("x")}
    up: dict[str, Any] = {"axis": None, "scale": fixed("y")}
    x, y = alt.X("x:Q", **across), alt.Y("y:Q", **up)
    tooltip = [
        text_line("pair"),
        number_line("position", places=0),
        number_line("first", "to the right"),
        number_line("second", "up"),
    ]
    circles = alt.Chart(alt.NamedData("circles"))
    every = alt.Chart().encode(x=x, y=y)
    now = every.transform_filter("datum.now")
    layers = (
        circles.mark_point(stroke=MIDDLE, strokeWidth=1, opacity=0.6).encode(
            x=x, y=y, size=alt.value((2 * CLOCK / ACROSS) ** 2)
        ),
        circles.mark_text(fontSize=12, color=MIDDLE).encode(
            x=x, y=alt.Y("low:Q", **up), text="pair:N"
        ),
        every.mark_point(filled=True, size=14, opacity=0.45).encode(tooltip=tooltip),
        now.mark_rule(strokeWidth=2.5, strokeCap="round").encode(
            x=alt.X("middle_x:Q", **across), y=alt.Y("middle_y:Q", **up), x2="x", y2="y"
        ),
        now.mark_point(filled=True, size=70).encode(tooltip=tooltip),
    )
    return framed_spec(alt.layer(*layers, data=alt.NamedData("tips")))
