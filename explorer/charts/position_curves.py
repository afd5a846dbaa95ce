"""Curves over positions: a pair of waves, and how two positions get on by their distance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from explorer.charts.frame import MIDDLE, Spec, framed, quantity, ruler, told

TOP = {"orient": "top", "title": None, "offset": 4}
Row = Mapping[str, float | str]
MOST_NAMED = 8
"""More heads than these are told by pointing."""
THICK = 4
"""Pixels of the line that is chosen."""
ROOM_FOR_WORDS = 0.12
"""The share of a chart's height that stays free for the words at its top."""
CLOCK, CLOCKS_A_LINE = 130, 6
"""Pixels of a clock with the room around it, and how many stand in a line."""


def waves(rows: Sequence[Row]) -> Spec:
    """Lines over positions; a row has `position`, `value` and `dimension`."""
    curve = {
        "mark": {"type": "line", "interpolate": "monotone", "point": {"size": 18}},
        "encoding": {
            "y": quantity("value", domain=_around(float(row["value"]) for row in rows)),
            "color": {"field": "dimension", "type": "nominal", "sort": None},
            # Colour never speaks alone: the second of a pair is dashed.
            "strokeDash": {"field": "dimension", "type": "nominal", "sort": None},
        },
    }
    tooltip = [told("dimension", places=None), told("position", places=0), told("value")]
    last = max((float(row["position"]) for row in rows), default=1.0)
    return framed(
        {
            "data": {"values": list(rows)},
            "encoding": {"x": quantity("position", domain=(0, last))},
            "layer": [curve, ruler("position", tooltip)],
        }
    )


def by_offset(rows: Sequence[tuple[int, float, float, float]], unit: str) -> Spec:
    """The mean over all pairs that far apart, in the band of the smallest and the largest."""
    names = ("offset", "smallest", "mean", "largest")
    values = [dict(zip(names, row, strict=True)) for row in rows]
    tooltip = [told("offset", "distance", 0), *(told(name) for name in names[1:])]
    reach = _around(number for row in rows for number in row[1:])
    y = quantity("mean", unit, domain=reach)
    return framed(
        {
            "data": {"values": values},
            "encoding": {
                "x": quantity("offset", "distance of the two positions", domain=(0, len(rows) - 1))
            },
            "layer": [
                {
                    "mark": {"type": "area", "opacity": 0.18},
                    "encoding": {
                        "y": {**y, "field": "smallest"},
                        "y2": {"field": "largest"},
                    },
                },
                {
                    "mark": {"type": "line", "point": {"size": 18}},
                    "encoding": {"y": y},
                },
                ruler("offset", tooltip),
            ],
        }
    )


def by_head(rows: Sequence[tuple[str, int, float]], unit: str, thick: str = "") -> Spec:
    """A line for each head over the distance of query and key; a row has head, distance, value."""
    values = [dict(zip(("head", "offset", "value"), row, strict=True)) for row in rows]
    tooltip = [told("head", places=None), told("offset", "distance", 0), told("value", unit)]
    offsets = [row[1] for row in rows] or [0]
    heads = list(dict.fromkeys(row[0] for row in rows))
    colour: Spec = {"field": "head", "type": "nominal", "sort": None}
    if len(heads) > MOST_NAMED:
        colour["legend"] = None
    curve = {"type": "line", "interpolate": "step" if unit == "bucket" else "linear"}
    drawn = {
        "y": quantity("value", unit, domain=_around(row[2] for row in rows)),
        "color": {**colour, "scale": {"domain": heads}},
    }
    return framed(
        {
            "data": {"values": values},
            "encoding": {
                "x": quantity(
                    "offset", "query's position − key's", domain=(min(offsets), max(*offsets, 1))
                )
            },
            "layer": [
                {"mark": curve, "encoding": drawn},
                {
                    "transform": [{"filter": {"field": "head", "equal": thick}}],
                    "mark": {**curve, "strokeWidth": THICK},
                    "encoding": drawn,
                },
                ruler("offset", tooltip),
            ],
        }
    )


def over_places(values: Sequence[float], border: int, unit: str) -> Spec:
    """A number for each position of a long text; a line stands where the trained ones end."""
    rows = [
        {"position": place, "value": value}
        for place, value in enumerate(values)
        if math.isfinite(value)
    ]
    x = quantity("position", domain=(0, max(len(values) - 1, 1)))
    tooltip = [told("position", places=0), told("value", unit)]
    low, high = _around(row["value"] for row in rows)
    y = quantity("value", unit, domain=(low, high + ROOM_FOR_WORDS * (high - low)))
    end: Spec = {"data": {"values": [{"position": border, "said": "longer than trained →"}]}}
    return framed(
        {
            "data": {"values": rows},
            "encoding": {"x": x},
            "layer": [
                {
                    "mark": {"type": "line"},
                    "encoding": {"y": y},
                },
                {**end, "mark": {"type": "rule", "strokeDash": [4, 3], "color": MIDDLE}},
                {
                    **end,
                    "mark": {"type": "text", "align": "left", "dx": 6, "y": 8, "color": MIDDLE},
                    "encoding": {"text": {"field": "said"}},
                },
                ruler("position", tooltip),
            ],
        }
    )


def clocks(hands: Sequence[tuple[str, Sequence[tuple[float, float]]]], place: int) -> Spec:
    """A clock for each pair: where its hand points at a position, and was at those before.

    `hands` are names and places of the tip (x, y) at every position; each clock is scaled to
    its longest hand, its circle is that long.
    """
    rows, marks = [], []
    for at, (name, tips) in enumerate(hands):
        longest = max((math.hypot(*tip) for tip in tips), default=0.0) or 1.0
        column, row = at % CLOCKS_A_LINE, at // CLOCKS_A_LINE
        middle = (2.5 * column + 1.25, -2.9 * row)
        for step, (right, up) in enumerate(tips[: place + 1]):
            rows.append(
                {
                    "x": middle[0] + right / longest,
                    "y": middle[1] + up / longest,
                    "middle_x": middle[0],
                    "middle_y": middle[1],
                    "pair": name,
                    "position": step,
                    "first": right,
                    "second": up,
                    "now": step == place,
                }
            )
        marks.append({"x": middle[0], "y": middle[1], "low": middle[1] - 1.28, "pair": name})
    lines = -(-len(hands) // CLOCKS_A_LINE)
    across = 2.5 * CLOCKS_A_LINE
    size: Spec = {"width": CLOCK * CLOCKS_A_LINE, "height": CLOCK * 1.16 * lines}
    x = {**quantity("x", domain=(0, across)), "axis": None}
    y = {**quantity("y", domain=(1.3 - 2.9 * lines, 1.3)), "axis": None}
    tooltip = [told("pair", places=None), told("position", places=0)]
    tooltip += [told("first", "to the right"), told("second", "up")]
    now: Spec = {"transform": [{"filter": "datum.now"}]}
    return framed(
        {
            **size,
            "data": {"values": rows},
            "encoding": {"x": x, "y": y},
            "layer": [
                {
                    "data": {"values": marks},
                    "mark": {"type": "point", "stroke": MIDDLE, "strokeWidth": 1, "opacity": 0.6},
                    "encoding": {"size": {"value": (2 * CLOCK / 2.5) ** 2}},
                },
                {
                    "data": {"values": marks},
                    "mark": {"type": "text", "fontSize": 12, "color": MIDDLE},
                    "encoding": {"y": {**y, "field": "low"}, "text": {"field": "pair"}},
                },
                {
                    "mark": {"type": "point", "filled": True, "size": 14, "opacity": 0.45},
                    "encoding": {"tooltip": tooltip},
                },
                {
                    **now,
                    "mark": {"type": "rule", "strokeWidth": 2.5, "strokeCap": "round"},
                    "encoding": {
                        "x": {**x, "field": "middle_x"},
                        "y": {**y, "field": "middle_y"},
                        "x2": {"field": "x"},
                        "y2": {"field": "y"},
                    },
                },
                {
                    **now,
                    "mark": {"type": "point", "filled": True, "size": 70},
                    "encoding": {"tooltip": tooltip},
                },
            ],
        }
    )


def _around(values: Iterable[float]) -> tuple[float, float]:
    """A range that holds all values and zero, with a little room."""
    found = [0.0, *values]
    low, high = min(found), max(found)
    room = 0.05 * ((high - low) or 1.0)
    return low - room * (low < 0), high + room
