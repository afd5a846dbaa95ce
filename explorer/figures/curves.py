"""Curves over positions: a pair of waves, and how two positions get on by their distance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from explorer.figures.frame import Spec, framed, quantity, ruler, told

TOP = {"orient": "top", "title": None, "offset": 4}
Row = Mapping[str, float | str]


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


def slopes(values: Sequence[float], count: int) -> Spec:
    """What each head takes off the score of a key, by its distance."""
    rows = [
        {"head": f"head {head}", "offset": offset, "bias": -slope * offset}
        for head, slope in enumerate(values)
        for offset in range(count)
    ]
    tooltip = [told("head", places=None), told("offset", "distance", 0), told("bias")]
    return framed(
        {
            "data": {"values": rows},
            "encoding": {
                "x": quantity("offset", "distance of query and key", domain=(0, count - 1))
            },
            "layer": [
                {
                    "mark": {"type": "line"},
                    "encoding": {
                        "y": quantity(
                            "bias",
                            "added to the score",
                            domain=(-max(values, default=1.0) * (count - 1), 0),
                        ),
                        "color": {"field": "head", "type": "nominal", "sort": None},
                    },
                },
                ruler("offset", tooltip),
            ],
        }
    )


def _around(values: Iterable[float]) -> tuple[float, float]:
    """A range that holds all values and zero, with a little room."""
    found = [0.0, *values]
    low, high = min(found), max(found)
    room = 0.05 * ((high - low) or 1.0)
    return low - room * (low < 0), high + room
