"""Several numbers over the steps of a training, which are on a logarithmic scale."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import altair as alt

from explorer.charts.fill import Spec, filled_chart, finite
from explorer.charts.frame import (
    around_zero,
    fixed,
    framed_spec,
    number_line,
    scale_ends,
    shown_place,
    text_line,
)

STEP_TICKS = [0, *(10**power for power in range(8))]
WHOLE_STEPS = "format(datum.value, ',d')"
LEGEND_COLUMNS, WIDEST_LINE_NAME = 3, 260


def lines_over_steps(
    rows: Sequence[tuple[int, str, float]], unit: str, of: str = "name", shown: int | None = None
) -> Spec:
    """A line from zero for each name; `rows` are its step, its name and its value.

    `of` says what is named; a rule stands at the step `shown`.
    """
    lines: list[dict[str, Any]] = [
        {"step": step, of: name, "value": finite(value)} for step, name, value in rows
    ]
    low, high = around_zero(value for _, _, value in rows)
    at: list[dict[str, Any]] = [] if shown is None else [{"step": shown}]
    ends = scale_ends("y", low, high if high > low else 1.0)
    return filled_chart(_lines(unit, of), {"lines": lines, "at": at}, **ends)


@cache
def _lines(unit: str, of: str) -> Spec:
    axis = alt.Axis(values=STEP_TICKS, labelExpr=WHOLE_STEPS)
    x = alt.X("step:Q", title="step", axis=axis, scale=alt.Scale(type="symlog", nice=False))
    legend = alt.Legend(columns=LEGEND_COLUMNS, labelLimit=WIDEST_LINE_NAME)
    lines = (
        alt.Chart(alt.NamedData("lines"))
        .mark_line(point=alt.OverlayMarkDef(size=22))
        .encode(
            x=x,
            y=alt.Y("value:Q", title=unit, scale=fixed("y")),
            color=alt.Color(f"{of}:N", sort=None, legend=legend),
            strokeDash=alt.StrokeDash(f"{of}:N", sort=None),
            tooltip=[text_line(of), number_line("step", places=0), number_line("value")],
        )
    )
    return framed_spec(alt.layer(shown_place(x), lines))
