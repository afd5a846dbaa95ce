"""The metric of a question over directions that are added, for clean and corrupted texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import altair as alt

from explorer.charts.fill import Spec, filled_chart, finite, written
from explorer.charts.frame import (
    MIDDLE,
    around_zero,
    curves_in_bands,
    fixed,
    framed_spec,
    number_line,
    ruler,
    scale_ends,
    text_line,
)

CLEAN, CORRUPTED = "clean", "corrupted"
WHICH: dict[str, Any] = {
    "sort": [CLEAN, CORRUPTED],
    "legend": alt.Legend(symbolOpacity=1),  # not as faint as the band
}


@dataclass(frozen=True)
class SteeredPoint:
    """With one direction the metric of one kind of text: the mean over pairs and its spread.

    `at` is its strength, its layer or its head.
    """

    at: float
    which: str
    mean: float
    spread: float = 0.0


def steering_chart(points: Sequence[SteeredPoint], over: str, metric: str, chosen: float) -> Spec:
    """A line for each kind of text in the band of its spread; a rule at what is chosen.

    `over` says what the points differ in: strength, layer or head.
    """
    curves = [{over: p.at, "which": p.which, "value": finite(p.mean)} for p in points]
    band = [
        {
            over: p.at,
            "which": p.which,
            "least": finite(p.mean - p.spread),
            "most": finite(p.mean + p.spread),
        }
        for p in points
    ]
    numbers: dict[float, dict[str, Any]] = {}
    for p in points:
        said = written(p.mean) + (f" ± {written(p.spread)}" if p.spread else "")
        numbers.setdefault(p.at, {over: p.at})[p.which] = said
    ends = (value for p in points for value in (p.mean - p.spread, p.mean + p.spread))
    places = [p.at for p in points] or [0.0]
    tables = {
        "curves": curves,
        "band": band,
        "numbers": [*numbers.values()],
        "chosen": [{over: chosen}],
    }
    axes = scale_ends("x", min(places), max(*places, 1.0)) | scale_ends("y", *around_zero(ends))
    return filled_chart(_steering(over, metric), tables, **axes)


@cache
def _steering(over: str, metric: str) -> Spec:
    whole = alt.Undefined if over == "strength" else alt.Axis(tickMinStep=1)
    x = alt.X(f"{over}:Q", title=over, scale=fixed("x"), axis=whole)
    y: dict[str, Any] = {"title": metric, "scale": fixed("y")}
    curves = curves_in_bands(x, y, "value", ("least", "most"), WHICH)
    chosen = (
        alt.Chart(alt.NamedData("chosen")).mark_rule(strokeDash=[4, 4], color=MIDDLE).encode(x=x)
    )
    tooltip = [number_line(over), text_line(CLEAN), text_line(CORRUPTED)]
    layers = alt.layer(*curves, chosen, ruler(x, over, tooltip, "numbers"))
    return framed_spec(layers)
