"""What a change does, as charts: chances before and after, and an effect by how much is cut."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from explorer.charts.bars import LONGEST, MONOSPACE
from explorer.charts.frame import Spec, framed, quantity, ruler, told
from explorer.text.labels import cut

BEFORE, AFTER = "before", "after"


def _finite(value: float) -> float | None:
    """What JSON has no number for is no value, and nothing is drawn there."""
    return value if math.isfinite(value) else None


def _said(value: float, places: int = 4) -> str:
    return f"{value:.{places}f}" if math.isfinite(value) else "no value"


def paired(labels: Sequence[str], before: Sequence[float], after: Sequence[float]) -> Spec:
    """Two bars for every label, before over after, on one scale from 0 to 1."""
    names = [
        f"\u2068{cut(label, LONGEST)}\u2069  {_said(mine, 3)} → {_said(theirs, 3)}"
        for label, mine, theirs in zip(labels, before, after, strict=True)
    ]
    rows = [
        {
            "order": order,
            "label": labels[order],
            "when": when,
            "value": _finite(value),
            "said": _said(value),
        }
        for when, values in ((BEFORE, before), (AFTER, after))
        for order, value in enumerate(values)
    ]
    # Two labels may look alike, so bars stand by their order and are only named by a label.
    axis = {
        "labelExpr": "names[datum.value]",
        "title": None,
        "labelLimit": 320,
        "labelFont": MONOSPACE,
    }
    colour = {
        "field": "when",
        "type": "nominal",
        "sort": [BEFORE, AFTER],
        "legend": {"symbolType": "square"},
    }
    y: Spec = {
        "field": "order",
        "type": "ordinal",
        "axis": axis,
        "scale": {"paddingInner": 0.28},
    }
    x: Spec = {
        "field": "value",
        "type": "quantitative",
        "axis": None,
        "scale": {"domain": [0, 1]},
    }
    tooltip = [
        told("label", "token", places=None),
        told("when", places=None),
        told("said", "probability", places=None),
    ]
    bar: Spec = {
        # Data inside a layer is part of the drawing, so a change of it draws everything anew.
        "data": {"values": rows},
        "mark": {"type": "bar", "cornerRadiusEnd": 2},
        "encoding": {
            "y": y,
            "yOffset": {"field": "when", "sort": [BEFORE, AFTER]},
            "x": x,
            "color": colour,
            "tooltip": tooltip,
        },
    }
    return framed({"params": [{"name": "names", "value": names}], "layer": [bar]})


@dataclass(frozen=True)
class Point:
    """What cutting `edges` edges does: the strongest, and the mean and range of random ones."""

    edges: int
    strongest: float
    mean: float
    least: float
    most: float


STRONGEST, RANDOM = "the strongest edges", "as many random edges"


def by_edges(points: Sequence[Point]) -> Spec:
    """Two lines over the number of edges; the random one in the band of its draws."""
    rows = [
        {"edges": p.edges, "which": which, "KL": _finite(value)}
        for p in points
        for which, value in ((STRONGEST, p.strongest), (RANDOM, p.mean))
    ]
    draws = [{"edges": p.edges, "least": _finite(p.least), "most": _finite(p.most)} for p in points]
    at = [
        {
            "edges": p.edges,
            "strongest": _said(p.strongest),
            "random": f"{_said(p.mean)} ({_said(p.least)} to {_said(p.most)})",
        }
        for p in points
    ]
    ends = [value for p in points for value in (p.strongest, p.most) if math.isfinite(value)]
    top = max(ends, default=0.0) or 1.0
    x = {**quantity("edges", "edges cut"), "scale": {"type": "log", "base": 2, "nice": False}}
    y = quantity("KL", "KL in nats", zero=True, domain=(0, top))
    colour = {"field": "which", "type": "nominal", "sort": [STRONGEST, RANDOM]}
    tooltip = [told("edges", places=0), *(told(n, places=None) for n in ("strongest", "random"))]
    return framed(
        {
            "encoding": {"x": x},
            "layer": [
                {
                    "data": {"values": draws},
                    "mark": {"type": "area", "opacity": 0.18},
                    "encoding": {
                        "y": {**y, "field": "least"},
                        "y2": {"field": "most"},
                        "color": {"datum": RANDOM},
                    },
                },
                {
                    "data": {"values": rows},
                    "mark": {"type": "line", "point": {"size": 22}},
                    "encoding": {"y": y, "color": colour, "strokeDash": colour},
                },
                {"data": {"values": at}, **ruler("edges", tooltip)},
            ],
        }
    )
