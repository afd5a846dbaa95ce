"""What a model considers, as bars: the likeliest first, each with its number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def bars(labels: Sequence[str], values: Sequence[float]) -> dict[str, Any]:
    """A Vega-Lite chart of probabilities; labels stay in the order they come."""
    rows = [
        {"label": label, "value": value, "said": f"{value:.3f}", "order": order}
        for order, (label, value) in enumerate(zip(labels, values, strict=True))
    ]
    # Two labels may look alike, so a bar stands by its order and is only named by its label.
    names = "datum.value == null ? '' : data('labels')[datum.value].label"
    y = {
        "field": "order",
        "type": "ordinal",
        "axis": {
            "labelExpr": names,
            "title": None,
            "domain": False,
            "ticks": False,
            "labelLimit": 120,
            "labelFont": "monospace",
        },
    }
    tooltip = [{"field": "label", "title": "token"}, {"field": "said", "title": "probability"}]
    return {
        "datasets": {"labels": rows},
        "data": {"name": "labels"},
        "encoding": {"y": y, "tooltip": tooltip},
        "layer": [
            {
                "mark": {"type": "bar", "cornerRadiusEnd": 2, "height": {"band": 0.7}},
                "encoding": {
                    "x": {
                        "field": "value",
                        "type": "quantitative",
                        "axis": None,
                        "scale": {"domainMax": min(1.0, 1.25 * max(values, default=1.0))},
                    }
                },
            },
            {
                "mark": {"type": "text", "align": "left", "dx": 4},
                "encoding": {
                    "x": {"field": "value", "type": "quantitative"},
                    "text": {"field": "said"},
                },
            },
        ],
        "view": {"stroke": None},
    }
