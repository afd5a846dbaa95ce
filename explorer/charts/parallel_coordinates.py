"""Many training runs at once: a line for each through its settings to its result.

Drawn with plotly's lines, not its `parcoords`: that one compiles its code in the browser, which
the app's content security policy does not allow.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from explorer.charts.plotly_frame import figure_of, plain_label
from explorer.charts.theme import Palette

PARALLEL_HEIGHT = 380
MOST_TICKS = 6
"""More different numbers than this have a tick at the smallest and the largest only."""

Value = float | str


@dataclass(frozen=True)
class ParallelAxis:
    """The place of each run between 0 and 1, and the values that have a tick, by their place."""

    places: tuple[float, ...]
    ticks: Mapping[float, str]


def parallel_axis(values: Sequence[Value]) -> ParallelAxis:
    """Numbers by their size, texts evenly in their order; equal values lie in the middle.

    The values are all numbers or all texts.
    """
    known: list[Any] = sorted(set[Any](values))
    if len(known) == 1:
        return ParallelAxis((0.5,) * len(values), {0.5: _shown(known[0])})
    if isinstance(known[0], str):
        place = {value: at / (len(known) - 1) for at, value in enumerate(known)}
    else:
        low, high = known[0], known[-1]
        place = {value: (value - low) / (high - low) for value in known}
    ticked = known if len(known) <= MOST_TICKS else [known[0], known[-1]]
    ticks = {place[value]: _shown(value) for value in ticked}
    return ParallelAxis(tuple(place[value] for value in values), ticks)


def parallel_runs(
    names: Sequence[str],
    columns: Mapping[str, Sequence[Value]],
    result: Sequence[float],
    palette: Palette,
) -> go.Figure:
    """Lines through an axis for each column, in their order; `result` gives their colours."""
    axes = [parallel_axis(values) for values in columns.values()]
    # Zero of the ramp is the page's background: a line of that colour could not be seen.
    visible = palette.sequential[3:]
    last = len(visible) - 1
    colours = [visible[round(last * place)] for place in parallel_axis(result).places]
    lines = [
        go.Scatter(
            x=[*range(len(axes))],
            y=[axis.places[run] for axis in axes],
            mode="lines+markers",
            line={"color": colour, "width": 2},
            customdata=[[plain_label(name, 40), _shown(value[run])] for value in columns.values()],
            hovertemplate="%{customdata[0]}: %{customdata[1]}<extra></extra>",
            showlegend=False,
        )
        for run, (name, colour) in enumerate(zip(names, colours, strict=True))
    ]
    ticks = [
        {"x": at, "y": place, "text": text, "xshift": 6, "xanchor": "left", "yanchor": "bottom"}
        | {"showarrow": False, "font": {"size": 12, "color": palette.muted}}
        for at, axis in enumerate(axes)
        for place, text in axis.ticks.items()
    ]
    rules = [
        {"type": "line", "x0": at, "x1": at, "y0": 0, "y1": 1, "layer": "below"}
        | {"line": {"color": palette.border, "width": 1}}
        for at in range(len(axes))
    ]
    hidden = {"showgrid": False, "zeroline": False, "fixedrange": True}
    titles = [plain_label(name) for name in columns]
    across = {"tickvals": [*range(len(axes))], "ticktext": titles, "side": "top"} | hidden
    room = {"l": 24, "r": 72, "t": 40, "b": 16}
    return figure_of(
        *lines,
        height=PARALLEL_HEIGHT,
        margin=room,
        xaxis={**across, "range": [-0.1, len(axes) - 0.7]},
        yaxis={**hidden, "visible": False, "range": [-0.06, 1.1]},
        annotations=ticks,
        shapes=rules,
        hovermode="closest",
    )


def _shown(value: Value) -> str:
    return plain_label(value) if isinstance(value, str) else f"{value:.3g}"
