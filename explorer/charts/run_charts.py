"""Charts of many training runs: their curves in one chart, and parallel coordinates of settings.

Plotly's lines draw the parallel coordinates, not its `parcoords`, which compiles code in the
browser; the app's content security policy does not allow that.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import plotly.graph_objects as go

from explorer.charts.plotly_frame import figure_of, plain_label
from explorer.charts.theme import TOLD_APART, Palette
from explorer.charts.vega_lite import (
    Spec,
    chart,
    columns_of_legend,
    fixed,
    layer,
    number_line,
    quantity,
    ruler,
)

MOST_ALIGNED = 150
"""Places along the axis at which all runs have a point."""
DASHES = tuple(
    map(list, ((1, 0), (6, 3), (2, 3), (8, 3, 2, 3), (12, 4), (1, 5), (10, 2, 1, 2), (4, 8)))
)
"""A dash for every `TOLD_APART` curves, so that everybody can tell 32 runs apart."""

Curve = Sequence[tuple[float, float]]


def aligned(
    curves: Mapping[str, Curve], how: Literal["mean", "last"], most: int = MOST_ALIGNED
) -> dict[str, list[Any]]:
    """Curves with different x values, resampled at shared ones: columns x, run, name, value.

    Each place has the mean of the values since the place before, or the last value so far. A
    curve has no place before its first point or after its last. O(points).
    """
    end = max((points[-1][0] for points in curves.values() if points), default=0.0)
    width = end / most
    if all(float(x).is_integer() for points in curves.values() for x, _ in points):
        width = -(-int(end) // most)  # whole steps
    width = width or 1
    table: dict[str, list[Any]] = {"x": [], "run": [], "name": [], "value": []}
    for at, (name, points) in enumerate(curves.items()):
        for place, value in _at_places(points, width, how):
            row = (place * width, f"r{at}", name, value)
            for column, cell in zip(table.values(), row, strict=True):
                column.append(cell)
    return table


def _at_places(points: Curve, width: float, how: str) -> list[tuple[int, float]]:
    groups: dict[int, list[float]] = {}
    for x, value in points:
        groups.setdefault(-int(-x // width), []).append(value)  # the place at or after it
    if not groups or how == "mean":
        return [(place, sum(values) / len(values)) for place, values in groups.items()]
    filled, last = [], 0.0
    for place in range(min(groups), max(groups) + 1):
        last = groups[place][-1] if place in groups else last
        filled.append((place, last))
    return filled


def overlaid_curves(
    names: Sequence[str],
    x_title: str,
    y_title: str,
    palette: Palette,
    *,
    is_stepped: bool,
    x_end: float = 1.0,
    y_end: float = 1.0,
) -> Spec:
    """The curves of an `aligned` table; `is_stepped` keeps a value until the next one.

    The axes begin at 0 and have fixed ends, so nothing moves while the curves grow.
    """
    x = quantity("x", title=x_title, scale=fixed(0, x_end or 1.0))
    colours = [palette.series[at % len(palette.series)] for at in range(len(names))]
    dashes = [DASHES[at // TOLD_APART % len(DASHES)] for at in range(len(names))]
    legend = {"columns": columns_of_legend(names), "labelLimit": 400}
    color, dash = (
        {"field": "name", "type": "nominal", "legend": legend}
        | {"scale": {"domain": list(names), "range": looks}}
        for looks in (colours, dashes)
    )
    line = {"type": "line", "interpolate": "step-after" if is_stepped else "linear"}
    y = quantity("value", title=y_title, scale=fixed(0, y_end or 1.0))
    tooltip = [number_line("x", x_title, places=1 if x_title == "seconds" else 0)]
    tooltip += [number_line(f"r{at}", name) for at, name in enumerate(names)]
    pivot = {"pivot": "run", "value": "value", "groupby": ["x"]}
    return chart(
        layer(line | {"strokeWidth": 2}, x=x, y=y, color=color, strokeDash=dash),
        ruler(x, tooltip) | {"transform": [pivot]},
    )


MOST_TICKS = 6
"""With more different numbers than this, only the smallest and the largest have a tick."""

Value = float | str


def parallel_axis(values: Sequence[Value]) -> tuple[list[float], dict[float, str]]:
    """The place of each run between 0 and 1, and the labels of the ticks by their place.

    Numbers are placed by their size, texts evenly in order; a single value is in the middle. The
    values are all numbers or all texts.
    """
    distinct: list[Any] = sorted(set[Any](values))
    if len(distinct) == 1:
        return [0.5] * len(values), {0.5: _label(distinct[0])}
    if isinstance(distinct[0], str):
        place = {value: at / (len(distinct) - 1) for at, value in enumerate(distinct)}
    else:
        low, high = distinct[0], distinct[-1]
        place = {value: (value - low) / (high - low) for value in distinct}
    ticked = distinct if len(distinct) <= MOST_TICKS else [distinct[0], distinct[-1]]
    return [place[value] for value in values], {place[value]: _label(value) for value in ticked}


def parallel_runs(
    names: Sequence[str],
    columns: Mapping[str, Sequence[Value]],
    result: Sequence[float],
    palette: Palette,
) -> go.Figure:
    """A line for each run through an axis for each column; `result` sets its colour."""
    axes = [parallel_axis(values) for values in columns.values()]
    # The ramp starts at the page's background: a line of that colour would be invisible.
    visible = palette.sequential[3:]
    last = len(visible) - 1
    colours = [visible[round(last * place)] for place in parallel_axis(result)[0]]
    lines = [
        go.Scatter(
            x=[*range(len(axes))],
            y=[places[run] for places, _ in axes],
            mode="lines+markers",
            line={"color": colour, "width": 2},
            customdata=[[plain_label(name, 40), _label(value[run])] for value in columns.values()],
            hovertemplate="%{customdata[0]}: %{customdata[1]}<extra></extra>",
            showlegend=False,
        )
        for run, (name, colour) in enumerate(zip(names, colours, strict=True))
    ]
    ticks = [
        {"x": at, "y": place, "text": text, "xshift": 6, "xanchor": "left", "yanchor": "bottom"}
        | {"showarrow": False, "font": {"size": 12, "color": palette.muted}}
        for at, (_, by_place) in enumerate(axes)
        for place, text in by_place.items()
    ]
    rules = [
        {"type": "line", "x0": at, "x1": at, "y0": 0, "y1": 1, "layer": "below"}
        | {"line": {"color": palette.border, "width": 1}}
        for at in range(len(axes))
    ]
    hidden = {"showgrid": False, "zeroline": False, "fixedrange": True}
    titles = [plain_label(name) for name in columns]
    across = {"tickvals": [*range(len(axes))], "ticktext": titles, "side": "top"} | hidden
    return figure_of(
        *lines,
        margin={"l": 24, "r": 72, "t": 40, "b": 16},
        xaxis={**across, "range": [-0.1, len(axes) - 0.7]},
        yaxis={**hidden, "visible": False, "range": [-0.06, 1.1]},
        annotations=ticks,
        shapes=rules,
        hovermode="closest",
    )


def _label(value: Value) -> str:
    return plain_label(value) if isinstance(value, str) else f"{value:.3g}"
