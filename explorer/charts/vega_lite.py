"""The building blocks of all Vega-Lite charts: layers, channels, scales, tooltips, quiet axes.

A chart has layers, and each layer has a mark and channels, as in Vega-Lite's documentation.
Nothing checks a chart at run time; a test checks every chart against Vega-Lite's schema.
Colours and fonts come from the page's theme (.streamlit/config.toml, equal to theme.py), so one
chart works on the light and the dark page.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from explorer.text.number_format import fixed as decimals

Spec = dict[str, Any]
Rows = Sequence[Mapping[str, Any]]

MIDDLE = "#757a83"
"""A grey with the same contrast on the light and the dark page."""

CHART_CONFIG: Spec = {
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


def chart(*layers: Spec, rows: Rows | None = None, **more: Any) -> Spec:
    """Layers over each other; layers without rows of their own draw `rows`.

    Streamlit sends `rows` as Arrow. A layer's own rows stay in the spec: to make Arrow, Streamlit
    loads pandas (65 MB), too much for ten numbers.
    """
    data = {} if rows is None else {"data": {"name": "rows"}, "datasets": {"rows": list(rows)}}
    return {"layer": [*layers], **data, **more, "config": CHART_CONFIG}


def layer(mark: Spec, rows: Rows | None = None, /, **channels: Any) -> Spec:
    """A mark, such as {"type": "line"}, and what each of its channels shows."""
    data = {} if rows is None else {"data": {"values": list(rows)}}
    return {"mark": mark, "encoding": channels, **data}


def quantity(field: str, **how: Any) -> Spec:
    """A channel that shows a column of numbers."""
    return {"field": field, "type": "quantitative", **how}


def category(field: str, **how: Any) -> Spec:
    """A channel that shows a column of names, in the order of the rows unless `sort` is given."""
    return {"field": field, "type": "nominal", "sort": None, **how}


def columns_of_legend(names: Iterable[str]) -> Spec:
    """Up to three columns: as many as these names leave room for in the chart."""
    longest = max(map(len, names), default=1)
    return {"expr": f"clamp(floor(width / {6.3 * (longest + 4):.0f}), 1, 3)"}


def colour_and_dash(field: str, **how: Any) -> Spec:
    """Colour and dash of lines by their names: colour is never the only difference."""
    return {"color": category(field, **how), "strokeDash": category(field, **how)}


def fixed(low: float, high: float, **more: Any) -> Spec:
    """A scale with fixed ends, whatever the data."""
    zero = {} if more.get("type") == "log" else {"zero": False}  # a logarithmic scale has no zero
    return {"domain": [low, high], "nice": False, **zero, **more}


def around_zero(values: Iterable[float]) -> tuple[float, float]:
    """A range that includes all finite values and zero, with 5% room at each end except at zero."""
    numbers = [0.0, *filter(math.isfinite, values)]
    low, high = min(numbers), max(numbers)
    room = 0.05 * ((high - low) or 1.0)
    return low - room * (low < 0), high + room


def finite(value: float) -> float | None:
    """The value, or None where JSON has no number for it and nothing is drawn."""
    return value if math.isfinite(value) else None


def number_text(value: float, places: int = 4) -> str:
    return decimals(value, places) if math.isfinite(value) else "no value"


def number_line(field: str, title: str | None = None, places: int = 3) -> Spec:
    return quantity(field, title=title or field, format=f".{places}~f")


def text_line(field: str, title: str | None = None) -> Spec:
    return {"field": field, "type": "nominal", "title": title or field}


def ruler(x: Spec, tooltip: Sequence[Spec], rows: Rows | None = None) -> Spec:
    """A thin line at the pointer, whose tooltip has every value there."""
    name = f"at_{x['field']}"
    select: Spec = {"type": "point", "on": "pointerover", "clear": "pointerout"}
    select |= {"nearest": True, "encodings": ["x"]}
    opacity = {"condition": {"param": name, "empty": False, "value": 0.5}, "value": 0}
    rule = layer({"type": "rule", "strokeWidth": 1}, rows, x=x, opacity=opacity, tooltip=[*tooltip])
    return rule | {"params": [{"name": name, "select": select}]}


def vertical_rule(x: Spec, place: float | None) -> Spec:
    """A rule at this place; no rule for None."""
    rows = [] if place is None else [{x["field"]: place}]
    return layer({"type": "rule", "strokeWidth": 1.5, "opacity": 0.7}, rows, x=x)


def curves_in_bands(
    x: Spec, y: Spec, curves: Rows, ends: tuple[str, str], band: Rows, only: str = "", **how: Any
) -> list[Spec]:
    """Areas between two `ends`, and lines of `y`; each `which` has a colour and a dash.

    If only one line has a band, `only` is its name, and the rows of the band need none.
    """
    colour = {"datum": only} if only else category("which", **how)
    low = y | {"field": ends[0]}
    area = {"type": "area", "fillOpacity": 0.18}
    line: Spec = {"type": "line", "point": {"size": 22}}
    return [
        layer(area, band, x=x, y=low, y2={"field": ends[1]}, color=colour),
        layer(line, curves, x=x, y=y, **colour_and_dash("which", **how)),
    ]
