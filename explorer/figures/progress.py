"""How a training goes: its loss, and what it reaches on held-out data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

MOST_POINTS = 300
HEIGHT = 180

Point = tuple[int, float]


def thinned(points: Sequence[Point], most: int = MOST_POINTS) -> list[Point]:
    """At most that many points: each the mean of its neighbours, at the step of the last."""
    size = -(-len(points) // most) if points else 1
    groups = [points[start : start + size] for start in range(0, len(points), size)]
    return [(group[-1][0], sum(value for _, value in group) / len(group)) for group in groups]


def loss_curve(points: Sequence[Point], steps: int) -> dict[str, Any]:
    """Nats over steps. The axis ends where the run will, so nothing moves while it grows."""
    return _curve(thinned(points), steps, "loss (nats)", zero=True)


def held_out_curve(
    points: Sequence[Point], steps: int, name: str, goal: float | None, is_share: bool
) -> dict[str, Any]:
    """The measurements, each a dot, and the goal as a dashed line."""
    chart = _curve(points[-MOST_POINTS:], steps, name, zero=is_share)
    chart["layer"][0]["mark"] |= {"point": {"size": 16}}
    if is_share:
        chart["layer"][0]["encoding"]["y"]["scale"] = {"domain": [0, 1.05], "nice": False}
    if goal is not None:
        chart["layer"].append(
            {
                "data": {"values": [{"goal": goal}]},
                "mark": {"type": "rule", "strokeDash": [4, 4], "opacity": 0.6},
                "encoding": {
                    "y": {"field": "goal", "type": "quantitative"},
                    "tooltip": [{"field": "goal", "format": ".3f"}],
                },
            }
        )
    return chart


def _curve(points: Sequence[Point], steps: int, title: str, zero: bool) -> dict[str, Any]:
    rows = [{"step": step, "value": value} for step, value in points]
    return {
        "data": {"values": rows},
        "layer": [
            {
                "mark": {"type": "line", "strokeWidth": 1.5},
                "encoding": {
                    "x": {
                        "field": "step",
                        "type": "quantitative",
                        "title": "step",
                        "scale": {"domain": [0, max(1, steps)], "nice": False},
                        "axis": {"tickCount": 5, "format": ",d", "titlePadding": 2},
                    },
                    "y": {
                        "field": "value",
                        "type": "quantitative",
                        "title": title,
                        "scale": {"zero": zero},
                        "axis": {"minExtent": 32, "tickCount": 4},
                    },
                    "tooltip": [
                        {"field": "step", "format": ",d"},
                        {"field": "value", "title": title, "format": ".3f"},
                    ],
                },
            }
        ],
    }
