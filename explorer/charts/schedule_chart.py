"""The learning rate over the steps of a training: as planned, as it was, and where it is."""

from collections.abc import Sequence
from functools import cache

import altair as alt

from explorer.charts.fill import Spec, filled_chart
from explorer.charts.frame import fixed, framed_spec, number_line, ruler, scale_ends
from explorer.charts.training_curves import GIVEN, Point, spread
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
    drawn = spread(been, MOST_POINTS)
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
    line = alt.Chart(PLANNED).mark_line(strokeWidth=1.75).encode(x=x, y=y)
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
