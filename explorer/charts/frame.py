"""What all charts share: quiet axes, a fixed place for everything, numbers one can read.

Colours and fonts come from the page's theme (.streamlit/config.toml, the same as
theme.py), so one chart serves light and dark.
"""

from __future__ import annotations

from typing import Any

Spec = dict[str, Any]

MIDDLE = "#757a83"
"""A grey that stands out as far from the light page as from the dark one."""

CONFIG: Spec = {
    "view": {"stroke": None},
    "axis": {
        "domain": False,
        "gridOpacity": 0.6,
        "tickSize": 0,
        "labelPadding": 6,
        "titlePadding": 8,
        "titleFontWeight": "normal",
        "titleAnchor": "end",
        "labelFontSize": 12,
        "titleFontSize": 12,
    },
    "axisX": {"grid": False},
    "legend": {
        "orient": "top",
        "title": None,
        "labelFontSize": 12,
        "symbolType": "stroke",
        "symbolStrokeWidth": 3,
        "offset": 4,
    },
    "line": {"strokeWidth": 1.75, "strokeCap": "round"},
    "rule": {"color": MIDDLE},
}


def framed(spec: Spec) -> Spec:
    """The chart in the frame of this app."""
    return {**spec, "config": CONFIG}


def quantity(
    field: str,
    title: str | None = None,
    *,
    zero: bool = False,
    domain: tuple[float, float] | None = None,
) -> Spec:
    """A number along an axis; with a `domain` the axis stands still whatever comes."""
    scale: Spec = {"zero": zero, "nice": False}
    if domain is not None:
        scale["domain"] = list(domain)
    return {"field": field, "type": "quantitative", "title": title or field, "scale": scale}


def told(field: str, title: str | None = None, places: int | None = 3) -> Spec:
    """A line of the tooltip."""
    line: Spec = {"field": field, "title": title or field}
    if places is not None:
        line["format"] = f".{places}~f"
        line["type"] = "quantitative"
    return line


def ruler(field: str, tooltip: list[Spec]) -> Spec:
    """A thin line at the pointer that says every value there; one need not hit a point."""
    return {
        "mark": {"type": "rule", "strokeWidth": 1},
        "params": [
            {
                "name": f"at_{field}",
                "select": {
                    "type": "point",
                    "on": "pointerover",
                    "nearest": True,
                    "clear": "pointerout",
                    "encodings": ["x"],
                },
            }
        ],
        "encoding": {
            "opacity": {
                "condition": {"param": f"at_{field}", "empty": False, "value": 0.5},
                "value": 0,
            },
            "tooltip": tooltip,
        },
    }
