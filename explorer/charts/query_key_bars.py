"""Bars of a query, a key and their product, number by number; and a pair by its distance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from explorer.charts.frame import MIDDLE, Spec, framed, quantity, ruler, told

AXIS_WIDTH = 56
"""The numbers beside every picture take the same room, so that dimensions stand in line."""
FEWEST_NAMED = 32
"""More dimensions than this are named in steps."""


def dimensions(
    values: Sequence[float], order: Sequence[int], title: str, *, last: bool = False
) -> Spec:
    """Signed bars, one a dimension, in this order; the `last` of several pictures names them.

    What is no number has no bar. Values above zero and below differ in colour and side.
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
                "value": value if math.isfinite(value) else None,
                "sum": running if math.isfinite(running) else None,
                "side": "above zero" if value > 0 else "below zero",
            }
        )
    every = max(1, math.ceil(len(order) / FEWEST_NAMED))
    names = f"datum.value % {every} ? '' : data('rows')[datum.value].dimension"
    hidden: Spec = {"labels": False, "title": None}
    named: Spec = {"labelExpr": names, "title": "dimension", "labelAngle": 0}
    signed = ["above zero", "below zero"]
    colours: Spec = {"domain": signed}  # the theme's first two, which every eye tells apart
    tooltip = [told("dimension", places=0), told("value", title, 6), told("sum", "sum so far", 6)]
    finite = [value for value in values if math.isfinite(value)]
    return framed(
        {
            "datasets": {"rows": rows},
            "data": {"name": "rows"},
            "mark": {"type": "bar", "width": {"band": 0.8}},
            "encoding": {
                "x": {
                    "field": "place",
                    "type": "ordinal",
                    "sort": None,
                    "axis": named if last else hidden,
                },
                "y": {
                    **quantity("value", title, domain=_around(finite)),
                    "axis": {"minExtent": AXIS_WIDTH, "maxExtent": AXIS_WIDTH, "tickCount": 4},
                },
                "color": {"field": "side", "type": "nominal", "scale": colours, "legend": None},
                "tooltip": tooltip,
            },
        }
    )


def by_distance(points: Sequence[tuple[int, float]], actual: int, what: str) -> Spec:
    """A line over the distances of query and key, and the pair's own distance marked."""
    rows = [
        {"distance": distance, "value": value} for distance, value in points if math.isfinite(value)
    ]
    own = [row for row in rows if row["distance"] == actual]
    places = [row["distance"] for row in rows] or [0]
    x = quantity("distance", "query's position − key's", domain=(min(places), max(*places, 1)))
    y = quantity("value", what, domain=_around(row["value"] for row in rows))
    pointer = ruler("distance", [told("distance", places=0), told("value", what, 4)])
    pointer["encoding"]["x"] = x
    mark: Spec = {"data": {"values": own}}
    return framed(
        {
            "data": {"values": rows},
            "layer": [
                {"mark": {"type": "line"}, "encoding": {"x": x, "y": y}},
                {
                    **mark,
                    "mark": {"type": "rule", "strokeDash": [2, 4], "color": MIDDLE},
                    "encoding": {"x": x},
                },
                {
                    **mark,
                    "mark": {"type": "point", "filled": True, "size": 90},
                    "encoding": {"x": x, "y": y},
                },
                pointer,
            ],
        }
    )


def _around(values: Iterable[float]) -> tuple[float, float]:
    """A range that holds all values and zero, with a little room."""
    found = [0.0, *values]
    low, high = min(found), max(found)
    room = 0.05 * ((high - low) or 1.0)
    return low - room * (low < 0), high + room
