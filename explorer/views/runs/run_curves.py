"""The curves of several runs over each other, each named by what tells it apart."""

from collections.abc import Iterable, Mapping, Sequence

import streamlit as st

from explorer.app.controls import one_of
from explorer.app.session import state_of
from explorer.charts.run_charts import (
    OVERLAID_HEIGHT,
    Curve,
    aligned,
    legend_columns,
    overlaid_curves,
)
from explorer.charts.theme import palette
from explorer.components.chart import chart
from explorer.runs.metrics import Metrics
from explorer.runs.run_differences import what_differs
from explorer.text.labels import literal
from explorer.views.runs.run_rows import RunRow

CURVE_AXES = ("Steps", "Seconds")


class ComparedMetrics(dict[str, Metrics]):
    """Those of the runs that are drawn, by name."""


def names_of(rows: Sequence[RunRow]) -> list[str]:
    """What each of these is called beside the others; all of them can be read."""
    return what_differs([row.spec for row in rows if row.spec], [row.run.title for row in rows])


def choose_axis() -> str:
    """Over what curves are drawn."""
    return one_of("curves_over", CURVE_AXES)


def draw_curves(rows: Sequence[RunRow], axis: str, key: str) -> None:
    """Their loss, and their held-out metric where it is the same one, side by side."""
    readable = [row for row in rows if row.spec and row.status]
    names = names_of(readable)
    every = dict(zip(names, _metrics(readable), strict=True))
    measures = dict.fromkeys(row.status.measure for row in readable if row.status)
    left, right = st.columns(2, gap="medium")
    with left:
        _draw(_curves(every, axis, "loss"), axis, "loss", f"{key}_loss", is_stepped=False)
    with right:
        if len([each for each in measures if each]) > 1:
            st.caption(f"Different held-out metrics have no common axis: {_list(measures)}.")
        else:
            measure = next(iter(measures), "") or "held out"
            title = f"{measure}, held out" if measure != "held out" else measure
            _draw(_curves(every, axis, "value"), axis, title, f"{key}_held_out", is_stepped=True)
    if axis == "Seconds" and (old := _without_seconds(every)):
        st.caption(f"Not drawn, as earlier versions recorded no seconds: {_list(old)}.")


def _metrics(rows: Sequence[RunRow]) -> list[Metrics]:
    """Kept for the session as long as they are drawn, so that only new lines are read."""
    kept = state_of(ComparedMetrics)
    found = {row.run.name: kept.get(row.run.name) or row.run.metrics() for row in rows}
    kept.clear()
    kept.update(found)
    return [each.update() for each in found.values()]


def _draw(curves: dict[str, Curve], axis: str, title: str, key: str, *, is_stepped: bool) -> None:
    table = aligned(curves, "last" if is_stepped else "mean")
    if not table["x"]:
        st.caption(f"The curves of the {title} appear with the first steps.")
        return
    theme = palette(st.context.theme.type)
    x_title = "step" if axis == "Steps" else "seconds"
    height = OVERLAID_HEIGHT + 18 * -(-len(curves) // legend_columns([*curves]))
    spec = overlaid_curves([*curves], x_title, title, theme, is_stepped=is_stepped)
    chart(spec, table=table, height=height, key=key, title=title)


def _curves(every: Mapping[str, Metrics], axis: str, number: str) -> dict[str, Curve]:
    """Each run's curve of the loss or the held-out value, as far as it has been written."""
    over = "step" if axis == "Steps" else "seconds"
    return {
        name: [
            (float(getattr(row, over)), float(getattr(row, number)))
            for row in each.rows
            if getattr(row, number) is not None and getattr(row, over) is not None
        ]
        for name, each in every.items()
    }


def _without_seconds(every: Mapping[str, Metrics]) -> list[str]:
    return [name for name, each in every.items() if any(row.seconds is None for row in each.rows)]


def _list(names: Iterable[str]) -> str:
    return ", ".join(literal(name) for name in names if name)
