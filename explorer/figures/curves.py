"""Curves over positions: a pair of waves, and how two positions get on by their distance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, float | str]


def waves(rows: Sequence[Row]) -> dict[str, Any]:
    """Lines over positions; a row has `position`, `value` and `dimension`."""
    return {
        "data": {"values": list(rows)},
        "mark": {"type": "line", "point": {"size": 14}},
        "encoding": {
            "x": _axis("position"),
            "y": _axis("value", zero=True),
            "color": {"field": "dimension", "type": "nominal", "legend": {"orient": "top"}},
            "tooltip": [
                {"field": "dimension", "title": "dimension"},
                {"field": "position"},
                {"field": "value", "format": ".3f"},
            ],
        },
    }


def by_offset(rows: Sequence[tuple[int, float, float, float]], unit: str) -> dict[str, Any]:
    """The mean over all pairs that far apart, in the band of the smallest and the largest."""
    names = ("offset", "smallest", "mean", "largest")
    values = [dict(zip(names, row, strict=True)) for row in rows]
    tooltip = [{"field": "offset"}]
    tooltip += [{"field": name, "format": ".3f"} for name in ("smallest", "mean", "largest")]
    y = {"field": "mean", "type": "quantitative", "title": unit}
    return {
        "data": {"values": values},
        "encoding": {"x": _axis("offset", "distance of the two positions"), "tooltip": tooltip},
        "layer": [
            {
                "mark": {"type": "area", "opacity": 0.25},
                "encoding": {
                    "y": {"field": "smallest", "type": "quantitative", "title": unit},
                    "y2": {"field": "largest"},
                },
            },
            {"mark": {"type": "line", "point": {"size": 14}}, "encoding": {"y": y}},
        ],
    }


def slopes(values: Sequence[float], count: int) -> dict[str, Any]:
    """What each head takes off the score of a key, by its distance."""
    rows = [
        {"head": f"head {head}", "offset": offset, "bias": -slope * offset}
        for head, slope in enumerate(values)
        for offset in range(count)
    ]
    return {
        "data": {"values": rows},
        "mark": {"type": "line"},
        "encoding": {
            "x": _axis("offset", "distance of query and key"),
            "y": {"field": "bias", "type": "quantitative", "title": "added to the score"},
            "color": {"field": "head", "type": "nominal", "legend": {"orient": "top"}},
            "tooltip": [{"field": "head"}, {"field": "offset"}, {"field": "bias", "format": ".3f"}],
        },
    }


def _axis(field: str, title: str | None = None, zero: bool = False) -> dict[str, Any]:
    return {
        "field": field,
        "type": "quantitative",
        "title": title or field,
        "scale": {"zero": zero, "nice": False},
    }
