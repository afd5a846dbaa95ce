"""Charts of training runs by step: loss, held-out metric, learning rate, and other numbers.

The charts contain no rows, as in `st.vega_lite_chart(table, loss_curves(...))`, so new points are
added to a chart on screen and it is not drawn again. The axes are fixed before the first step, so
nothing moves while points arrive.
"""

import math
from collections.abc import Sequence

from explorer.charts.vega_lite import (
    MIDDLE,
    Spec,
    around_zero,
    category,
    chart,
    colour_and_dash,
    columns_of_legend,
    finite,
    fixed,
    layer,
    number_line,
    quantity,
    ruler,
    text_line,
    vertical_rule,
)
from models.config import TrainConfig
from models.schedules import learning_rate

MOST_POINTS, MOST_RATES = 300, 160
CURVES_HEIGHT, SCHEDULE_HEIGHT = 180, 96
EDGE = 8
"""Pixels on the right, since a plot grows by some when points are added."""
STEP_TICKS = [0, *(10**power for power in range(8))]
WHOLE_STEPS = "format(datum.value, ',d')"
WIDEST_LINE_NAME = 260

Point = tuple[int, float]


def thinned(points: Sequence[Point], most: int = MOST_POINTS) -> list[Point]:
    """At most `most` points: each is the mean of its neighbours, at the step of the last."""
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
    """Evenly chosen points of the whole run, unchanged, and always its last point.

    There are at most `most`, and one more where the last was not chosen.
    """
    sampled = list(points[:: one_in(points, most)])
    return sampled if sampled[-1:] == list(points[-1:]) else [*sampled, points[-1]]


def loss_curves(
    steps: int,
    highest: float,
    *,
    run: str | None = None,
    marks: Sequence[tuple[int, str]] = (),
) -> Spec:
    """The loss of a table with `step` and `loss`, and its mean over 15 rows.

    The axis of the loss is fixed and ends at `highest`. With `run` the table's column of that
    name distinguishes several runs. `marks` are steps at which something happened, and what.
    """
    x, scale = _steps(steps), fixed(0, highest or 1.0, zero=True, clamp=True)
    colour = {"color": category(run)} if run else {}
    loss, mean = (quantity(name, title="loss", scale=scale) for name in ("loss", "mean"))
    smoothed = {"op": "mean", "field": "loss", "as": "mean"}
    window = {"window": [smoothed], "frame": [-7, 7], "sort": [{"field": "step"}]}
    happened = [{"step": step, "what": what} for step, what in marks]
    arrow = {"type": "point", "shape": "triangle-down", "filled": True, "size": 70}
    arrow |= {"opacity": 1, "color": MIDDLE}
    at = number_line("step", places=0)
    return chart(
        layer({"type": "line", "strokeWidth": 1, "opacity": 0.3}, x=x, y=loss, **colour),
        layer({"type": "line", "strokeWidth": 2}, x=x, y=mean, **colour),
        ruler(x, [at, number_line("loss"), number_line("mean", "smoothed")]),
        layer({"type": "rule", "strokeDash": [2, 3]}, happened, x=x),
        layer(arrow, happened, x=x, y={"value": 4}, tooltip=[at, text_line("what")]),
        transform=[window | ({"groupby": [run]} if run else {})],
        padding={"right": EDGE},
    )


def held_out_curves(
    name: str,
    steps: int,
    *,
    goal: float | None = None,
    domain: tuple[float, float] = (0.0, 1.0),
    run: str | None = None,
) -> Spec:
    """A held-out metric of a table with `step` and `value`; the goal is a dashed rule."""
    x, scale = _steps(steps), fixed(*domain, clamp=True)
    title = f"{name}, goal {goal:g}" if goal is not None else name
    line = {"type": "line", "interpolate": "step-after", "point": {"size": 24}}
    value = quantity("value", title=title, scale=scale)
    layers = [
        layer(line, x=x, y=value, **({"color": category(run)} if run else {})),
        ruler(x, [number_line("step", places=0), number_line("value", name)]),
    ]
    if goal is not None:  # its own row, so there is one rule and not one for each point
        dashed = {"type": "rule", "strokeDash": [4, 4]}
        layers.append(layer(dashed, [{"goal": goal}], y=value | {"field": "goal"}))
    return chart(*layers, padding={"right": EDGE})


def _steps(steps: int) -> Spec:
    return quantity("step", title="step", scale=fixed(0, max(1, steps)))


def planned_rates(training: TrainConfig) -> list[Point]:
    """Evenly chosen steps with their learning rates, the end of the warm-up and the last step."""
    share = max(1, -(-training.steps // MOST_RATES))
    steps = {*range(1, training.steps + 1, share), training.steps}
    steps |= {at for at in (training.warmup, training.warmup + 1) if 0 < at <= training.steps}
    return [(at, learning_rate(training, at - 1)) for at in sorted(steps)]


def schedule_chart(training: TrainConfig, highest: float = 0.0) -> Spec:
    """The planned rates, and over them the rates of a table; its last step is marked.

    The axis includes `highest`, the highest rate so far.
    """
    planned = planned_rates(training)
    top = max(highest, *(rate for _, rate in planned))
    rows = [{"step": at, "rate": rate} for at, rate in planned]
    x = quantity("step", title=None, scale=fixed(0, training.steps), axis={"tickCount": 4})
    axis = {"tickCount": 2, "format": ".2~g"}
    y = quantity("rate", title=None, scale=fixed(0, top or 1.0, zero=True), axis=axis)
    title = {"text": "Learning rate by step", "anchor": "start", "fontSize": 12, "offset": 4}
    last = {"op": "max", "field": "step", "as": "step"}
    now = layer({"type": "rule", "strokeWidth": 1.5, "aria": False}, x=x)
    tooltip = [number_line("step", places=0), number_line("rate", "learning rate", places=6)]
    return chart(
        layer({"type": "area", "opacity": 0.25, "aria": False}, x=x, y=y),
        layer({"type": "line", "strokeWidth": 1.75}, rows, x=x, y=y),
        now | {"transform": [{"aggregate": [last]}]},
        ruler(x, tooltip, rows),
        title=title | {"fontWeight": "normal"},
    )


def rate_table(rates: Sequence[Point]) -> dict[str, list[float]]:
    """The rates of a run so far, as the table of `schedule_chart`."""
    points = spread(rates, MOST_RATES)
    return {"step": [step for step, _ in points], "rate": [rate for _, rate in points]}


def lines_over_steps(
    rows: Sequence[tuple[int, str, float]],
    unit: str,
    of: str = "name",
    rule_at: int | None = None,
    over: str = "step",
    zero: bool = True,
    ticks: Sequence[int] = STEP_TICKS,
) -> Spec:
    """A line for each name, on an axis with `zero`; a row has a step, a name and a value.

    `of` is the heading of the names, `over` that of the steps; a rule marks the step `rule_at`.
    """
    values = [value for _, _, value in rows if math.isfinite(value)] or [0.0]
    low, high = around_zero(values) if zero else (min(values), max(values))
    axis = {"values": [*ticks], "labelExpr": WHOLE_STEPS}
    x = quantity(over, title=over, axis=axis, scale={"type": "symlog", "nice": False})
    columns = columns_of_legend(name for _, name, _ in rows)
    lines = layer(
        {"type": "line", "point": {"size": 22}},
        [{over: step, of: name, "value": finite(value)} for step, name, value in rows],
        x=x,
        y=quantity("value", title=unit, scale=fixed(low, high if high > low else 1.0)),
        **colour_and_dash(of, legend={"columns": columns, "labelLimit": WIDEST_LINE_NAME}),
        tooltip=[text_line(of), number_line(over, places=0), number_line("value")],
    )
    rule = [] if rule_at is None else [vertical_rule(x, rule_at)]
    return chart(*rule, lines)
