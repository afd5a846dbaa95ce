"""Query, key and their product dimension by dimension; and a score by the distance of the pair."""

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

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
)
from explorer.charts.position_curves import QUERY_MINUS_KEY

AXIS_WIDTH = 56
"""The numbers beside every chart take the same room, so that dimensions stand in line."""
FEWEST_NAMED = 32
"""Of more dimensions than this, every so many is named."""
SIGN_NAMES = ["above zero", "below zero"]


def dimension_bars(
    values: Sequence[float], order: Sequence[int], title: str, *, last: bool = False
) -> Spec:
    """Signed bars, one for each dimension, in this order; the `last` of several charts names them.

    What is not finite has no bar. Values above zero and below differ in colour and side.
    """
    running = 0.0
    rows: list[dict[str, Any]] = []
    for place, dimension in enumerate(order):
        value = values[dimension]
        running += value
        rows.append(
            {
                "place": place,
                "dimension": dimension,
                "value": finite(value),
                "sum": finite(running),
                "side": SIGN_NAMES[0] if value > 0 else SIGN_NAMES[1],
            }
        )
    every = max(1, math.ceil(len(order) / FEWEST_NAMED))
    around = around_zero(values)
    return filled_chart(
        _dimensions(title, last), {"rows": rows}, every=every, **scale_ends("y", *around)
    )


def distance_curve(points: Sequence[tuple[int, float]], actual: int, unit: str) -> Spec:
    """A line over the distances of query and key, and the pair's own distance marked."""
    rows = [
        {"distance": distance, "value": value} for distance, value in points if math.isfinite(value)
    ]
    own = [row for row in rows if row["distance"] == actual]
    distances = [row["distance"] for row in rows] or [0]
    axes = scale_ends("x", min(distances), max(*distances, 1))
    axes |= scale_ends("y", *around_zero(row["value"] for row in rows))
    return filled_chart(_distances(unit), {"rows": rows, "own": own}, **axes)


@cache
def _dimensions(title: str, last: bool) -> Spec:
    names = "datum.value % every ? '' : data('rows')[datum.value].dimension"
    hidden = alt.Axis(labels=False, title=None)
    named = alt.Axis(labelExpr=names, title="dimension", labelAngle=0)
    beside = alt.Axis(minExtent=AXIS_WIDTH, maxExtent=AXIS_WIDTH, tickCount=4)
    # The theme's first two colours, which every reader can tell apart.
    side = alt.Color("side:N", scale=alt.Scale(domain=SIGN_NAMES), legend=None)
    tooltip = [
        number_line("dimension", places=0),
        number_line("value", title, 6),
        number_line("sum", "sum so far", 6),
    ]
    return framed_spec(
        alt.Chart(alt.NamedData("rows"))
        .mark_bar(width=alt.RelativeBandSize(band=0.8))
        .encode(
            x=alt.X("place:O", sort=None, axis=named if last else hidden),
            y=alt.Y("value:Q", title=title, scale=fixed("y"), axis=beside),
            color=side,
            tooltip=tooltip,
        )
    )


@cache
def _distances(unit: str) -> Spec:
    x = alt.X("distance:Q", title=QUERY_MINUS_KEY, scale=fixed("x"))
    y = alt.Y("value:Q", title=unit, scale=fixed("y"))
    own = alt.Chart(alt.NamedData("own"))
    tooltip = [number_line("distance", places=0), number_line("value", unit, 4)]
    layers = (
        alt.Chart().mark_line().encode(x=x, y=y),
        own.mark_rule(strokeDash=[2, 4], color=MIDDLE).encode(x=x),
        own.mark_point(filled=True, size=90).encode(x=x, y=y),
        ruler(x, "distance", tooltip),
    )
    return framed_spec(alt.layer(*layers, data=alt.NamedData("rows")))
