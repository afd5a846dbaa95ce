"""How a training run goes: the loss as it falls, the held-out figure as it rises.

The charts hold no data: it is given beside them, `st.vega_lite_chart(table, loss(...))`,
so a chart on screen is fed and not built again. The axes are fixed by what is known
before the first step, so nothing moves while the points come.
"""

from __future__ import annotations

from collections.abc import Sequence

from explorer.charts.frame import Spec, framed, quantity, ruler, told

MOST_POINTS = 300
HEIGHT = 180

Point = tuple[int, float]


def thinned(points: Sequence[Point], most: int = MOST_POINTS) -> list[Point]:
    """At most that many points: each the mean of its neighbours, at the step of the last."""
    size = together(points, most)
    groups = [points[start : start + size] for start in range(0, len(points), size)]
    return [(group[-1][0], sum(value for _, value in group) / len(group)) for group in groups]


def together(points: Sequence[Point], most: int = MOST_POINTS) -> int:
    """How many neighbours become one point where there are more than `most`."""
    return max(1, -(-len(points) // most))


def loss(steps: int, highest: float | None = None, *, run: str | None = None) -> Spec:
    """The loss of a table with `step` and `loss`, and its mean over 15 rows.

    `highest` is the loss to expect at the start, ln of the vocabulary. With `run` the
    table's column of that name keeps several runs apart.
    """
    y = quantity("loss", zero=True, domain=(0, highest) if highest else None)
    y["scale"]["clamp"] = True
    around = {"frame": [-7, 7], "sort": [{"field": "step"}]}
    mean: Spec = {"window": [{"op": "mean", "field": "loss", "as": "mean"}], **around}
    colour: Spec = {}
    if run:
        mean["groupby"] = [run]
        colour = {"color": {"field": run, "type": "nominal", "sort": None}}
    tooltip = [told("step", places=0), told("loss"), told("mean", "smoothed")]
    return framed(
        {
            "transform": [mean],
            "encoding": {"x": _steps(steps)},
            "layer": [
                {
                    "mark": {"type": "line", "strokeWidth": 1, "opacity": 0.3},
                    "encoding": {"y": y, **colour},
                },
                {
                    "mark": {"type": "line", "strokeWidth": 2},
                    "encoding": {"y": {**y, "field": "mean"}, **colour},
                },
                ruler("step", tooltip),
            ],
        }
    )


def held_out(
    name: str,
    steps: int,
    *,
    goal: float | None = None,
    domain: tuple[float, float] | None = (0.0, 1.0),
    run: str | None = None,
) -> Spec:
    """A held-out measurement of a table with `step` and `value`; the goal is a dashed line."""
    colour = {"color": {"field": run, "type": "nominal", "sort": None}} if run else {}
    titled = f"{name}, goal {goal:g}" if goal is not None else name
    x = _steps(steps)
    y = quantity("value", titled, domain=domain)
    y["scale"]["clamp"] = True
    line: Spec = {
        "mark": {"type": "line", "interpolate": "step-after", "point": {"size": 24}},
        "encoding": {"x": x, "y": y, **colour},
    }
    pointer = ruler("step", [told("step", places=0), told("value", name)])
    pointer["encoding"]["x"] = x
    layers = [line, pointer]
    if goal is not None:
        # Its data is its own: one line over the whole width, however many points there are.
        aim: Spec = {
            "data": {"values": [{"goal": goal}]},
            "mark": {"type": "rule", "strokeDash": [4, 4]},
            "encoding": {"y": quantity("goal", titled, domain=domain)},
        }
        layers.append(aim)
    return framed({"layer": layers})


def _steps(steps: int) -> Spec:
    return quantity("step", domain=(0, max(1, steps)))
