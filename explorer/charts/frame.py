"""What all charts share: quiet axes, a fixed place for everything, readable numbers.

A chart is written with altair once per process, which validates it in 4 to 40 ms; `framed_spec`
gives its Vega-Lite spec, and `fill.filled_chart` puts the data of one run into a copy.
Colours and fonts come from the page's theme (.streamlit/config.toml, the same as
theme.py), so one chart serves light and dark.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt

from explorer.charts.fill import Spec

MIDDLE = "#757a83"
"""A grey that stands out as far from the light page as from the dark one."""

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


def framed_spec(chart: alt.TopLevelMixin) -> Spec:
    """The chart's Vega-Lite spec in the frame of this app, without any data."""
    spec = chart.to_dict()
    return {key: spec[key] for key in spec if key not in {"$schema", "datasets"}} | {
        "config": CHART_CONFIG
    }


def inside_layer(spec: Spec) -> Spec:
    """The same chart as the only layer of another: its table stays in the spec."""
    outer = {"config", "params"}
    return {"layer": [{key: spec[key] for key in spec if key not in outer}]} | {
        key: spec[key] for key in spec if key in outer
    }


def fixed(axis: str, *, zero: bool | None = False, **more: Any) -> alt.Scale:
    """A scale from the parameter `x_low` to `x_high` (or y), whatever the data."""
    ends = [alt.ExprRef(f"{axis}_low"), alt.ExprRef(f"{axis}_high")]
    if zero is not None:  # a logarithmic scale has none
        more["zero"] = zero
    return alt.Scale(domain=ends, nice=False, **more)


def scale_ends(axis: str, low: float, high: float) -> dict[str, float]:
    """The parameters of a `fixed` scale."""
    return {f"{axis}_low": low, f"{axis}_high": high}


def around_zero(values: Iterable[float]) -> tuple[float, float]:
    """A range that holds all finite values and zero, with 5% room at each end but at zero."""
    found = [0.0, *filter(math.isfinite, values)]
    low, high = min(found), max(found)
    room = 0.05 * ((high - low) or 1.0)
    return low - room * (low < 0), high + room


def curves_in_bands(
    x: alt.X, y: Spec, value: str, ends: tuple[str, str], which: Spec, only: str = ""
) -> list[alt.Chart]:
    """The tables `band` and `curves`: areas between two `ends`, and lines of a `value`.

    Each `which` has a colour and a dash; where `only` one has a band, its table names none.
    """
    colour = alt.Color("which:N", **which)
    band = (
        alt.Chart(alt.NamedData("band"))
        .mark_area(fillOpacity=0.18)
        .encode(
            x=x,
            y=alt.Y(f"{ends[0]}:Q", **y),
            y2=ends[1],
            color=alt.ColorDatum(only) if only else colour,
        )
    )
    dash = alt.StrokeDash("which:N", **which)
    lines = alt.Chart(alt.NamedData("curves")).mark_line(point=alt.OverlayMarkDef(size=22))
    return [band, lines.encode(x=x, y=alt.Y(f"{value}:Q", **y), color=colour, strokeDash=dash)]


def shown_place(x: alt.X) -> alt.Chart:
    """The table `at`: a rule at the place that is shown elsewhere."""
    return alt.Chart(alt.NamedData("at")).mark_rule(strokeWidth=1.5, opacity=0.7).encode(x=x)


def number_line(field: str, title: str | None = None, places: int = 3) -> alt.Tooltip:
    """A number in the tooltip."""
    return alt.Tooltip(f"{field}:Q", title=title or field, format=f".{places}~f")


def text_line(field: str, title: str | None = None) -> alt.Tooltip:
    """A text in the tooltip."""
    return alt.Tooltip(f"{field}:N", title=title or field)


def ruler(
    x: alt.X, field: str, tooltip: Sequence[alt.Tooltip], data: str | None = None
) -> alt.Chart:
    """A thin line at the pointer with every value there; one need not hit a point."""
    pointer = alt.selection_point(
        name=f"at_{field}", on="pointerover", nearest=True, clear="pointerout", encodings=["x"]
    )
    shown = alt.when(pointer, empty=False).then(alt.value(0.5)).otherwise(alt.value(0))
    chart = alt.Chart(alt.NamedData(data)) if data else alt.Chart()
    return (
        chart.mark_rule(strokeWidth=1)
        .encode(x=x, opacity=shown, tooltip=list(tooltip))
        .add_params(pointer)
    )
