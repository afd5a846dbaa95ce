"""The learning rate over the steps of a training: as planned, as it was, and where it is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import altair as alt

from explorer.charts.fill import Rows, Spec, filled_chart
from explorer.charts.frame import fixed, framed_spec, number_line, ruler, scale_ends
from explorer.charts.training_curves import Point, one_in
from models.training import TrainConfig, learning_rate

HEIGHT = 96
MOST_POINTS = 160
PLANNED = alt.NamedData("planned")


def planned_rates(training: TrainConfig) -> list[Point]:
    """Steps from 1 and their learning rates: one in so many, the end of the warm-up, the last."""
    share = max(1, -(-training.steps // MOST_POINTS))
    kept = {*range(1, training.steps + 1, share), training.steps}
    kept |= {at for at in (training.warmup, training.warmup + 1) if 0 < at <= training.steps}
    return [(at, learning_rate(training, at - 1)) for at in sorted(kept)]


def schedule_chart(
    training: TrainConfig, been: Sequence[Point] = (), step: int | None = None
) -> Spec:
    """The planned rates; over them those that a run has had, up to the step that is marked."""
    planned = planned_rates(training)
    highest = max(rate for _, rate in (*planned, *been))
    share = one_in(been, MOST_POINTS)
    had = [*been[::share], *been[-1:]]
    axes = scale_ends("x", 0, training.steps) | scale_ends("y", 0, highest or 1.0)
    tables: dict[str, Rows] = {
        "planned": [{"step": at, "rate": rate} for at, rate in planned],
        "been": [{"step": at, "rate": rate} for at, rate in had],
        "now": [] if step is None else [{"step": step}],
    }
    return filled_chart(_schedule(), tables, **axes)


@cache
def _schedule() -> Spec:
    x = alt.X("step:Q", title=None, scale=fixed("x"), axis=alt.Axis(tickCount=4))
    y = alt.Y(
        "rate:Q",
        title=None,
        scale=fixed("y", zero=True),
        axis=alt.Axis(tickCount=2, format=".2~g"),
    )
    line = alt.Chart(PLANNED).mark_line(strokeWidth=1.75).encode(x=x, y=y)
    been = alt.Chart(alt.NamedData("been")).mark_area(opacity=0.25, line=False).encode(x=x, y=y)
    now = alt.Chart(alt.NamedData("now")).mark_rule(strokeWidth=1.5).encode(x=x)
    pointed = ruler(
        x,
        "step",
        [number_line("step", places=0), number_line("rate", "learning rate", places=6)],
        data="planned",
    )
    title = alt.TitleParams(
        "learning rate by step", anchor="start", fontSize=12, fontWeight="normal", offset=4
    )
    return framed_spec(alt.layer(been, line, now, pointed, title=title))
