"""Curves over positions and distances: tables, products, biases and scores; and clocks."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from explorer.charts.vega_lite import (
    MIDDLE,
    Spec,
    around_zero,
    category,
    chart,
    colour_and_dash,
    finite,
    fixed,
    layer,
    number_line,
    quantity,
    ruler,
    text_line,
)

MOST_NAMED_CURVES = 8
"""The legend names at most this many heads; the tooltip names every one."""
THICK = 4
"""Pixels of the chosen head's line."""
ROOM_FOR_TEXT = 0.12
"""The share of a chart's height that stays free for the text at its top."""
CLOCK, CLOCKS_A_LINE = 130, 6
"""Pixels of a clock with the room around it, and the number of clocks in a row."""
ACROSS, DOWN = 2.5, 2.9
"""The same room in lengths of a hand."""
QUERY_MINUS_KEY = "query's position − key's"


def wave_curves(rows: Sequence[Mapping[str, float | str]], compared: Iterable[float] = ()) -> Spec:
    """Lines over positions; a row has `position`, `value` and `dimension`.

    The axis also includes the `compared` values, which are those of the charts next to this one.
    """
    last = max((float(row["position"]) for row in rows), default=1.0)
    ends = around_zero([*compared, *(float(row["value"]) for row in rows)])
    x = quantity("position", title="position", scale=fixed(0, last))
    y = quantity("value", title="value", scale=fixed(*ends))
    line = {"type": "line", "interpolate": "monotone", "point": {"size": 18}}
    return chart(
        layer(line, x=x, y=y, **colour_and_dash("dimension")),
        ruler(x, [text_line("dimension"), number_line("position", places=0), number_line("value")]),
        rows=[{**row, "value": finite(float(row["value"]))} for row in rows],
    )


def offset_curve(
    rows: Sequence[tuple[int, float, float, float]], unit: str, compared: Iterable[float] = ()
) -> Spec:
    """The mean over all pairs of one distance, in the band of the smallest and the largest.

    A row has the distance, the smallest, the mean and the largest. The axis also includes the
    `compared` values.
    """
    names = ("offset", "smallest", "mean", "largest")
    ends = around_zero([*compared, *(number for row in rows for number in row[1:])])
    x = quantity("offset", title="distance of the two positions", scale=fixed(0, len(rows) - 1))
    y = {"title": unit, "scale": fixed(*ends)}
    low, mean = quantity("smallest", **y), quantity("mean", **y)
    return chart(
        layer({"type": "area", "opacity": 0.18}, x=x, y=low, y2={"field": "largest"}),
        layer({"type": "line", "point": {"size": 18}}, x=x, y=mean),
        ruler(x, [number_line("offset", "distance", 0), *map(number_line, names[1:])]),
        rows=[dict(zip(names, (row[0], *map(finite, row[1:])), strict=True)) for row in rows],
    )


def head_curves(
    rows: Sequence[tuple[str, int, float]],
    unit: str,
    thick: str = "",
    compared: Iterable[float] = (),
) -> Spec:
    """A line for each head over the distance of query and key; a row has head, distance, value.

    The line of the head `thick` is thicker. The axis also includes the `compared` values.
    """
    heads = list(dict.fromkeys(head for head, _, _ in rows))
    legend = {} if len(heads) <= MOST_NAMED_CURVES else {"legend": None}
    x = _distances("offset", [offset for _, offset, _ in rows])
    ends = around_zero([*compared, *(value for _, _, value in rows)])
    y = quantity("value", title=unit, scale=fixed(*ends))
    channels = {"x": x, "y": y, "color": category("head", scale={"domain": heads}, **legend)}
    line = {"type": "line", "interpolate": "step" if unit == "bucket" else "linear"}
    is_thick = {"transform": [{"filter": {"field": "head", "equal": thick}}]}
    tooltip = [text_line("head"), number_line("offset", "distance", 0), number_line("value", unit)]
    return chart(
        layer(line, **channels),
        layer(line | {"strokeWidth": THICK}, **channels) | is_thick,
        ruler(x, tooltip),
        rows=[{"head": head, "offset": at, "value": finite(value)} for head, at, value in rows],
    )


def distance_curve(points: Sequence[tuple[int, float]], actual: int, unit: str) -> Spec:
    """A line over the distances of query and key, with the pair's own distance marked."""
    rows = [{"distance": at, "value": value} for at, value in points if math.isfinite(value)]
    own = [row for row in rows if row["distance"] == actual]
    x = _distances("distance", [row["distance"] for row in rows])
    y = quantity("value", title=unit, scale=fixed(*around_zero(row["value"] for row in rows)))
    return chart(
        layer({"type": "line"}, x=x, y=y),
        layer({"type": "rule", "strokeDash": [2, 4], "color": MIDDLE}, own, x=x),
        layer({"type": "point", "filled": True, "size": 90}, own, x=x, y=y),
        ruler(x, [number_line("distance", places=0), number_line("value", unit, 4)]),
        rows=rows,
    )


def _distances(field: str, distances: Sequence[float]) -> Spec:
    ends = min(distances, default=0), max([*distances, 1])
    return quantity(field, title=QUERY_MINUS_KEY, scale=fixed(*ends))


def position_curve(values: Sequence[float], trained: int, unit: str) -> Spec:
    """A value at each position of a long text; a rule marks the trained length."""
    rows = [
        {"position": position, "value": value}
        for position, value in enumerate(values)
        if math.isfinite(value)
    ]
    low, high = around_zero(row["value"] for row in rows)
    x = quantity("position", title="position", scale=fixed(0, max(len(values) - 1, 1)))
    y = quantity("value", title=unit, scale=fixed(low, high + ROOM_FOR_TEXT * (high - low)))
    border = [{"position": trained, "text": "longer than in training →"}]
    text = {"type": "text", "align": "left", "dx": 6, "y": 8, "color": MIDDLE}
    return chart(
        layer({"type": "line"}, x=x, y=y),
        layer({"type": "rule", "strokeDash": [4, 3], "color": MIDDLE}, border, x=x),
        layer(text, border, x=x, text={"field": "text", "type": "nominal"}),
        ruler(x, [number_line("position", places=0), number_line("value", unit)]),
        rows=rows,
    )


def rotation_clocks(
    hands: Sequence[tuple[str, Sequence[tuple[float, float]]]], position: int
) -> Spec:
    """A clock for each pair of dimensions: its hand at a position, dots at earlier positions.

    `hands` are names and tips (x, y) at every position; a clock's radius is its longest hand.
    """
    tips: list[dict[str, Any]] = []
    circles: list[dict[str, Any]] = []
    for index, (name, points) in enumerate(hands):
        lengths = [math.hypot(*point) for point in points]
        longest = max(filter(math.isfinite, lengths), default=0.0) or 1.0
        line, column = divmod(index, CLOCKS_A_LINE)
        middle_x, middle_y = ACROSS * (column + 0.5), -DOWN * line
        circles.append({"x": middle_x, "y": middle_y, "low": middle_y - 1.28, "pair": name})
        tips += [
            {"x": middle_x + right / longest, "y": middle_y + up / longest}
            | {"middle_x": middle_x, "middle_y": middle_y, "pair": name, "position": step}
            | {"first": right, "second": up, "now": step == position}
            for step, (right, up) in enumerate(points[: position + 1])
            if math.isfinite(right + up)
        ]
    lines, a_line = -(-len(hands) // CLOCKS_A_LINE), min(max(len(hands), 1), CLOCKS_A_LINE)
    across = {"axis": None, "scale": fixed(0, ACROSS * a_line)}
    up_and_down = {"axis": None, "scale": fixed(1.3 - DOWN * lines, 1.3)}
    at = {"x": quantity("x", **across), "y": quantity("y", **up_and_down)}
    below = at | {"y": quantity("low", **up_and_down)}
    middle = {"x": quantity("middle_x", **across), "y": quantity("middle_y", **up_and_down)}
    tooltip = [
        text_line("pair"),
        number_line("position", places=0),
        number_line("first", "to the right"),
        number_line("second", "up"),
    ]
    circle = {"type": "point", "stroke": MIDDLE, "strokeWidth": 1, "opacity": 0.6}
    dot, hand = {"type": "point", "filled": True}, {"type": "rule", "strokeWidth": 2.5}
    named = {"type": "text", "fontSize": 12, "color": MIDDLE}
    now = {"transform": [{"filter": "datum.now"}]}
    return chart(
        layer(circle, circles, **at, size={"value": (2 * CLOCK / ACROSS) ** 2}),
        layer(named, circles, **below, text={"field": "pair", "type": "nominal"}),
        layer(dot | {"size": 14, "opacity": 0.45}, **at, tooltip=tooltip),
        layer(hand | {"strokeCap": "round"}, **middle, x2={"field": "x"}, y2={"field": "y"}) | now,
        layer(dot | {"size": 70}, **at, tooltip=tooltip) | now,
        rows=tips,
        width=CLOCK * a_line,
        height=CLOCK * 1.16 * lines,
    )
