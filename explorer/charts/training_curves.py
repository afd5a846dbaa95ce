"""Training runs: the loss, the measurement on held-out data, and the learning rate.

The charts hold no rows: `st.vega_lite_chart(table, loss_curves(...))`, so a chart on screen
is fed and not built again. The axes are fixed by what is known before the first step, so
nothing moves while the points come.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import altair as alt

from explorer.charts.fill import Spec, filled_chart
from explorer.charts.frame import (
    MIDDLE,
    fixed,
    framed_spec,
    number_line,
    ruler,
    scale_ends,
    text_line,
)
from models.config import TrainConfig
from models.schedules import learning_rate

MOST_POINTS, MOST_RATES = 300, 160
CURVES_HEIGHT, SCHEDULE_HEIGHT = 180, 96
EDGE = 8
"""Pixels on the right: the plot of a chart that is fed grows by some, over the edge of the rest."""
GIVEN = alt.NamedData("given")

Point = tuple[int, float]


def thinned(points: Sequence[Point], most: int = MOST_POINTS) -> list[Point]:
    """At most that many points: each the mean of its neighbours, at the step of the last."""
    size = points_per_mean(points, most)
    groups = [points[start : start + size] for start in range(0, len(points), size)]
    return [(group[-1][0], sum(value for _, value in group) / len(group)) for group in groups]


def points_per_mean(points: Sequence[Point], most: int = MOST_POINTS) -> int:
    """How many neighbours become one point where there are more than `most`."""
    return max(1, -(-len(points) // most))


def one_in(points: Sequence[Point], most: int = MOST_POINTS) -> int:
    """1, or the power of two that leaves at most `most` points of a whole run.

    It doubles, so the points on screen stay where they are while a run goes on.
    """
    share = 1
    while len(points) > most * share:
        share *= 2
    return share


def spread(points: Sequence[Point], most: int = MOST_POINTS) -> list[Point]:
    """Points of the whole run, as they are: one in so many from the first on, and the last.

    So there are at most `most`, and one more where the last is none of them.
    """
    share = one_in(points, most)
    kept = list(points[::share])
    return kept if kept[-1:] == list(points[-1:]) else [*kept, points[-1]]


def loss_curves(
    steps: int,
    highest: float | None = None,
    *,
    run: str | None = None,
    marks: Sequence[tuple[int, str]] = (),
) -> Spec:
    """The loss of a table with `step` and `loss`, and its mean over 15 rows.

    `highest` is where the axis of the loss ends, if it is to stand still. With `run` the
    table's column of that name keeps several runs apart. `marks` are steps at which something
    happened, and what.
    """
    axes = scale_ends("x", 0, max(1, steps)) | (scale_ends("y", 0, highest) if highest else {})
    tables = {"marks": [{"step": step, "what": what} for step, what in marks]}
    return filled_chart(_loss(bool(highest), run), tables, **axes)


def held_out_curves(
    name: str,
    steps: int,
    *,
    goal: float | None = None,
    domain: tuple[float, float] | None = (0.0, 1.0),
    run: str | None = None,
) -> Spec:
    """A held-out measurement of a table with `step` and `value`; the goal is a dashed rule."""
    axes = scale_ends("x", 0, max(1, steps)) | (scale_ends("y", *domain) if domain else {})
    title = f"{name}, goal {goal:g}" if goal is not None else name
    # The goal's row is its own: one rule over the whole width, however many points there are.
    tables = {"goal": [{"goal": goal}]} if goal is not None else {}
    return filled_chart(_held_out(name, title, bool(domain), run), tables, **axes)


def _steps() -> alt.X:
    return alt.X("step:Q", title="step", scale=fixed("x"))


def _run_colours(run: str | None) -> dict[str, Any]:
    return {"color": alt.Color(f"{run}:N", sort=None)} if run else {}


def _y_scale(fixed_ends: bool, *, zero: bool) -> alt.Scale:
    if fixed_ends:
        return fixed("y", zero=zero, clamp=True)
    return alt.Scale(zero=zero, nice=False, clamp=True)


@cache
def _loss(fixed_ends: bool, run: str | None) -> Spec:
    x, marked = _steps(), alt.Chart(alt.NamedData("marks"))
    y: dict[str, Any] = {"title": "loss", "scale": _y_scale(fixed_ends, zero=True)}
    drawn: dict[str, Any] = {"x": x, **_run_colours(run)}
    tooltip = [number_line("step", places=0), number_line("loss"), number_line("mean", "smoothed")]
    layers = (
        alt.Chart().mark_line(strokeWidth=1, opacity=0.3).encode(y=alt.Y("loss:Q", **y), **drawn),
        alt.Chart().mark_line(strokeWidth=2).encode(y=alt.Y("mean:Q", **y), **drawn),
        ruler(x, "step", tooltip),
        marked.mark_rule(strokeDash=[2, 3]).encode(x=x),
        marked.mark_point(
            shape="triangle-down", filled=True, size=70, opacity=1, color=MIDDLE
        ).encode(x=x, y=alt.value(4), tooltip=[number_line("step", places=0), text_line("what")]),
    )
    chart = alt.layer(*layers, data=GIVEN).transform_window(
        mean="mean(loss)",
        frame=[-7, 7],
        sort=[alt.SortField("step")],
        groupby=[run] if run else alt.Undefined,
    )
    return _without_rows(chart)


@cache
def _held_out(name: str, title: str, fixed_ends: bool, run: str | None) -> Spec:
    x = _steps()
    y: dict[str, Any] = {"title": title, "scale": _y_scale(fixed_ends, zero=False)}
    curve = (
        alt.Chart()
        .mark_line(interpolate="step-after", point=alt.OverlayMarkDef(size=24))
        .encode(x=x, y=alt.Y("value:Q", **y), **_run_colours(run))
    )
    layers = [curve, ruler(x, "step", [number_line("step", places=0), number_line("value", name)])]
    if title != name:
        goal = alt.Chart(alt.NamedData("goal")).mark_rule(strokeDash=[4, 4])
        layers.append(goal.encode(y=alt.Y("goal:Q", **y)))
    return _without_rows(alt.layer(*layers, data=GIVEN))


def planned_rates(training: TrainConfig) -> list[Point]:
    """Steps from 1 and their learning rates: one in so many, the end of the warm-up, the last."""
    share = max(1, -(-training.steps // MOST_RATES))
    kept = {*range(1, training.steps + 1, share), training.steps}
    kept |= {at for at in (training.warmup, training.warmup + 1) if 0 < at <= training.steps}
    return [(at, learning_rate(training, at - 1)) for at in sorted(kept)]


def schedule_chart(training: TrainConfig, highest: float = 0.0) -> Spec:
    """The planned rates; over them the `step` and `rate` of a table, whose last step is marked.

    The axis reaches to `highest`, where a run has had so high a rate.
    """
    planned = planned_rates(training)
    top = max(highest, *(rate for _, rate in planned))
    axes = scale_ends("x", 0, training.steps) | scale_ends("y", 0, top or 1.0)
    rows = [{"step": at, "rate": rate} for at, rate in planned]
    return filled_chart(_schedule(), {"planned": rows}, **axes)


def rate_table(been: Sequence[Point]) -> dict[str, list[float]]:
    """The rates that a run has had, as `schedule_chart` takes them."""
    drawn = spread(been, MOST_RATES)
    return {"step": [step for step, _ in drawn], "rate": [rate for _, rate in drawn]}


@cache
def _schedule() -> Spec:
    x = alt.X("step:Q", title=None, scale=fixed("x"), axis=alt.Axis(tickCount=4))
    y = alt.Y(
        "rate:Q",
        title=None,
        scale=fixed("y", zero=True),
        axis=alt.Axis(tickCount=2, format=".2~g"),
    )
    line = alt.Chart(alt.NamedData("planned")).mark_line(strokeWidth=1.75).encode(x=x, y=y)
    been = alt.Chart().mark_area(opacity=0.25, aria=False).encode(x=x, y=y)
    now = (
        alt.Chart()
        .transform_aggregate(step="max(step)")
        .mark_rule(strokeWidth=1.5, aria=False)
        .encode(x=x)
    )
    pointed = ruler(
        x,
        "step",
        [number_line("step", places=0), number_line("rate", "learning rate", places=6)],
        data="planned",
    )
    title = alt.TitleParams(
        "learning rate by step", anchor="start", fontSize=12, fontWeight="normal", offset=4
    )
    spec = framed_spec(alt.layer(been, line, now, pointed, data=GIVEN, title=title))
    del spec["data"]
    return spec


def _without_rows(chart: alt.TopLevelMixin) -> Spec:
    spec = framed_spec(chart)
    del spec["data"]
    return spec | {"padding": {"right": EDGE}}
