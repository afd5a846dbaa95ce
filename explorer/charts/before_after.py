"""Effects of interventions: probabilities before and after, and KL by the number of edges cut."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import altair as alt

from explorer.charts.bars import LONGEST_BAR_LABEL, MONOSPACE
from explorer.charts.fill import Spec, filled_chart, finite, written
from explorer.charts.frame import (
    curves_in_bands,
    fixed,
    framed_spec,
    inside_layer,
    number_line,
    ruler,
    scale_ends,
    text_line,
)
from explorer.text.labels import cut

BEFORE, AFTER = "before", "after"
STRONGEST_EDGES, RANDOM_EDGES = "the strongest edges", "as many random edges"


@dataclass(frozen=True)
class EdgeCut:
    """The KL after cutting `edges` edges: the strongest, and the mean and range of random ones."""

    edges: int
    strongest: float
    mean: float
    least: float
    most: float


def before_after_bars(
    labels: Sequence[str], before: Sequence[float], after: Sequence[float]
) -> Spec:
    """Two bars for every label, before over after, on one scale from 0 to 1."""
    names = [
        f"\u2068{cut(label, LONGEST_BAR_LABEL)}\u2069  {written(old, 3)} → {written(new, 3)}"
        for label, old, new in zip(labels, before, after, strict=True)
    ]
    rows = [
        {
            "order": order,
            "label": labels[order],
            "when": when,
            "value": finite(value),
            "number": written(value),
        }
        for when, values in ((BEFORE, before), (AFTER, after))
        for order, value in enumerate(values)
    ]
    return filled_chart(_pairs(), {"pairs": rows}, names=names)


def edge_cut_curves(points: Sequence[EdgeCut]) -> Spec:
    """Two lines over the number of edges; the random one in the band of its draws."""
    curves: list[dict[str, Any]] = [
        {"edges": p.edges, "which": which, "KL": finite(value)}
        for p in points
        for which, value in ((STRONGEST_EDGES, p.strongest), (RANDOM_EDGES, p.mean))
    ]
    band: list[dict[str, Any]] = [
        {"edges": p.edges, "least": finite(p.least), "most": finite(p.most)} for p in points
    ]
    numbers: list[dict[str, Any]] = [
        {
            "edges": p.edges,
            "strongest": written(p.strongest),
            "random": f"{written(p.mean)} ({written(p.least)} to {written(p.most)})",
        }
        for p in points
    ]
    known = [value for p in points for value in (p.strongest, p.most) if math.isfinite(value)]
    tables = {"curves": curves, "band": band, "numbers": numbers}
    return filled_chart(_edge_cuts(), tables, **scale_ends("y", 0, max(known, default=0.0) or 1.0))


@cache
def _pairs() -> Spec:
    # Two labels may be equal, so bars stand by their order and are only named by a label.
    axis = alt.Axis(labelExpr="names[datum.value]", title=None, labelLimit=320, labelFont=MONOSPACE)
    when = alt.Color("when:N", sort=[BEFORE, AFTER], legend=alt.Legend(symbolType="square"))
    tooltip = [text_line("label", "token"), text_line("when"), text_line("number", "probability")]
    chart = (
        alt.Chart(alt.NamedData("pairs"))
        .mark_bar(cornerRadiusEnd=2)
        .encode(
            y=alt.Y("order:O", axis=axis, scale=alt.Scale(paddingInner=0.28)),
            yOffset=alt.YOffset("when:N", sort=[BEFORE, AFTER]),
            x=alt.X("value:Q", axis=None, scale=alt.Scale(domain=[0, 1])),
            color=when,
            tooltip=tooltip,
        )
    )
    return inside_layer(framed_spec(chart))


@cache
def _edge_cuts() -> Spec:
    x = alt.X("edges:Q", title="edges cut", scale=alt.Scale(type="log", base=2, nice=False))
    y: dict[str, Any] = {"title": "KL in nats", "scale": fixed("y", zero=True)}
    which: dict[str, Any] = {"sort": [STRONGEST_EDGES, RANDOM_EDGES]}
    curves = curves_in_bands(x, y, "KL", ("least", "most"), which, RANDOM_EDGES)
    tooltip = [number_line("edges", places=0), text_line("strongest"), text_line("random")]
    return framed_spec(alt.layer(*curves, ruler(x, "edges", tooltip, "numbers")))
