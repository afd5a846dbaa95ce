"""The singular values of a matrix, largest first, and those of a random matrix."""

from collections.abc import Sequence

from explorer.charts.vega_lite import (
    MIDDLE,
    Spec,
    chart,
    colour_and_dash,
    fixed,
    layer,
    number_line,
    quantity,
    ruler,
)

THIS_MATRIX, RANDOM_MATRIX = "this matrix", "random matrix of its size"
MOST_SINGULAR_VALUES = 400
ALL_UP_TO = 100
SMALLEST = 1e-6
"""On a logarithmic axis, values below this share of the largest are drawn at its lower end."""


def drawn_ranks(count: int) -> list[int]:
    """Which of `count` values are drawn: the first hundred, then evenly spaced ones."""
    if count <= MOST_SINGULAR_VALUES:
        return list(range(count))
    spread = MOST_SINGULAR_VALUES - ALL_UP_TO
    step = (count - 1 - ALL_UP_TO) / (spread - 1)
    return [*range(ALL_UP_TO), *(ALL_UP_TO + round(step * at) for at in range(spread))]


def singular_value_curves(
    values: Sequence[float],
    random: Sequence[float],
    edge: float | None = None,
    *,
    logarithmic: bool = False,
) -> Spec:
    """Two lines over the rank, and a rule at the expected `edge` of random matrices.

    Without an edge the rule is at the largest value of `random`, one matrix that was drawn.
    """
    name = "largest of the random matrix" if edge is None else "expected edge of random matrices"
    edge = max(random, default=0.0) if edge is None else edge
    top = max([*values[:1], *random[:1], edge], default=0.0) or 1.0
    low = floor = SMALLEST * top if logarithmic else 0.0
    ranks = drawn_ranks(min(len(values), len(random)))
    rows = [
        {"rank": at + 1, "value": max(line[at], floor), "which": which}
        | {"own": values[at], "random": random[at]}
        for which, line in ((THIS_MATRIX, values), (RANDOM_MATRIX, random))
        for at in ranks
    ]
    if logarithmic and ranks:
        low = max(floor, min(values[ranks[-1]], random[ranks[-1]]))
    kind = {"type": "log"} if logarithmic else {"zero": True}
    x = quantity("rank", title="rank", scale=fixed(1, max(2, len(values))))
    y = quantity("value", title="singular value", scale=fixed(low, 1.05 * top, **kind))
    limit = [{"edge": edge, "text": name}]
    text = {"type": "text", "x": "width", "align": "right", "dy": -7, "color": MIDDLE}
    tooltip = [
        number_line("rank", places=0),
        number_line("own", THIS_MATRIX),
        number_line("random", RANDOM_MATRIX),
    ]
    return chart(
        layer({"type": "line"}, x=x, y=y, **colour_and_dash("which")),
        layer({"type": "rule", "strokeDash": [2, 4]}, limit, y=y | {"field": "edge"}),
        layer(text, limit, y=y | {"field": "edge"}, text={"field": "text", "type": "nominal"}),
        ruler(x, tooltip),
        rows=rows,
    )
