"""The singular values of a matrix, the largest first, beside those of noise."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.charts.frame import MIDDLE, Spec, framed, quantity, ruler, told

MATRIX, NOISE = "this matrix", "noise of its size"
MOST_POINTS = 400
ALL_UP_TO = 100
SMALLEST = 1e-6
"""Where the axis is logarithmic, values below this share of the largest lie on its lower end."""


def ranks(count: int) -> list[int]:
    """Which of `count` values are drawn: the first hundred, then evenly many."""
    if count <= MOST_POINTS:
        return list(range(count))
    spread = MOST_POINTS - ALL_UP_TO
    step = (count - 1 - ALL_UP_TO) / (spread - 1)
    return [*range(ALL_UP_TO), *(ALL_UP_TO + round(step * at) for at in range(spread))]


def spectrum(
    values: Sequence[float], noise: Sequence[float], edge: float, *, logarithmic: bool = False
) -> Spec:
    """Two lines over the rank, and the edge that noise does not pass."""
    top = max([*values[:1], *noise[:1], edge], default=0.0) or 1.0
    floor = SMALLEST * top if logarithmic else 0.0
    drawn = ranks(min(len(values), len(noise)))
    rows = [
        {"rank": at + 1, "value": max(line[at], floor), "which": which}
        | {"own": values[at], "noise": noise[at]}
        for which, line in ((MATRIX, values), (NOISE, noise))
        for at in drawn
    ]
    low = floor
    if logarithmic and drawn:
        low = max(floor, min(values[drawn[-1]], noise[drawn[-1]]))
    y = quantity("value", "singular value", zero=not logarithmic, domain=(low, 1.05 * top))
    if logarithmic:
        y["scale"]["type"] = "log"
    tooltip = [told("rank", places=0), told("own", MATRIX), told("noise", NOISE)]
    x = quantity("rank", domain=(1, max(2, len(values))))
    lines: Spec = {
        "mark": {"type": "line"},
        "encoding": {
            "x": x,
            "y": y,
            "color": {"field": "which", "type": "nominal", "sort": None},
            # Colour never speaks alone: noise is dashed.
            "strokeDash": {"field": "which", "type": "nominal", "sort": None},
        },
    }
    known: Spec = {"data": {"values": [{"edge": edge, "said": "edge of noise"}]}}
    limit: Spec = {
        **known,
        "mark": {"type": "rule", "strokeDash": [2, 4]},
        "encoding": {"y": {**y, "field": "edge"}},
    }
    said: Spec = {
        **known,
        "mark": {"type": "text", "x": "width", "align": "right", "dy": -7, "color": MIDDLE},
        "encoding": {
            "y": {**y, "field": "edge"},
            "text": {"field": "said"},
        },
    }
    pointer = ruler("rank", tooltip)
    pointer["encoding"]["x"] = x
    return framed({"data": {"values": rows}, "layer": [lines, limit, said, pointer]})
