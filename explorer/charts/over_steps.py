"""Several numbers over the steps of a training, which are on a logarithmic scale."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import altair as alt

from explorer.charts.fill import Spec, filled_chart, finite
from explorer.charts.frame import fixed, framed_spec, number_line, scale_ends, text_line

STEPS = [0, *(10**power for power in range(8))]
WHOLE = "format(datum.value, ',d')"
COLUMNS, WIDEST_NAME = 3, 260


def lines_over_steps(rows: Sequence[tuple[int, str, float]], unit: str) -> Spec:
    """A line from zero for each name; `rows` are its step, its name and its value."""
    lines: list[dict[str, Any]] = [
        {"step": step, "name": name, "value": finite(value)} for step, name, value in rows
    ]
    top = max((row["value"] for row in lines if row["value"] is not None), default=0.0) or 1.0
    return filled_chart(_lines(unit), {"lines": lines}, **scale_ends("y", 0.0, 1.05 * top))


@cache
def _lines(unit: str) -> Spec:
    axis = alt.Axis(values=STEPS, labelExpr=WHOLE)
    x = alt.X("step:Q", title="step", axis=axis, scale=alt.Scale(type="symlog", nice=False))
    lines = (
        alt.Chart(alt.NamedData("lines"))
        .mark_line(point=alt.OverlayMarkDef(size=22))
        .encode(
            x=x,
            y=alt.Y("value:Q", title=unit, scale=fixed("y")),
            color=alt.Color(
                "name:N", sort=None, legend=alt.Legend(columns=COLUMNS, labelLimit=WIDEST_NAME)
            ),
            strokeDash=alt.StrokeDash("name:N", sort=None),
            tooltip=[text_line("name"), number_line("step", places=0), number_line("value")],
        )
    )
    return framed_spec(lines)
