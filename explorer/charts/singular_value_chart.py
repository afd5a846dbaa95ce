"""The singular values of a matrix, the largest first, beside those of a random matrix."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import altair as alt

from explorer.charts.fill import Spec, filled_chart
from explorer.charts.frame import MIDDLE, fixed, framed_spec, number_line, ruler, scale_ends

THIS_MATRIX, RANDOM_MATRIX = "this matrix", "random matrix of its size"
MOST_SINGULAR_VALUES = 400
ALL_UP_TO = 100
SMALLEST = 1e-6
"""On a logarithmic axis, values below this share of the largest lie on its lower end."""


def drawn_ranks(count: int) -> list[int]:
    """Which of `count` values are drawn: the first hundred, then evenly many."""
    if count <= MOST_SINGULAR_VALUES:
        return list(range(count))
    spread = MOST_SINGULAR_VALUES - ALL_UP_TO
    step = (count - 1 - ALL_UP_TO) / (spread - 1)
    return [*range(ALL_UP_TO), *(ALL_UP_TO + round(step * at) for at in range(spread))]


def singular_value_curves(
    values: Sequence[float], random: Sequence[float], edge: float, *, logarithmic: bool = False
) -> Spec:
    """Two lines over the rank, and the edge that a random matrix does not pass."""
    top = max([*values[:1], *random[:1], edge], default=0.0) or 1.0
    floor = SMALLEST * top if logarithmic else 0.0
    drawn = drawn_ranks(min(len(values), len(random)))
    rows = [
        {"rank": at + 1, "value": max(line[at], floor), "which": which}
        | {"own": values[at], "random": random[at]}
        for which, line in ((THIS_MATRIX, values), (RANDOM_MATRIX, random))
        for at in drawn
    ]
    low = floor
    if logarithmic and drawn:
        low = max(floor, min(values[drawn[-1]], random[drawn[-1]]))
    limit = [{"edge": edge, "text": "edge of a random matrix"}]
    axes = scale_ends("x", 1, max(2, len(values))) | scale_ends("y", low, 1.05 * top)
    return filled_chart(_curves(logarithmic), {"rows": rows, "limit": limit}, **axes)


@cache
def _curves(logarithmic: bool) -> Spec:
    scale = fixed("y", zero=None, type="log") if logarithmic else fixed("y", zero=True)
    x = alt.X("rank:Q", title="rank", scale=fixed("x"))
    y: dict[str, Any] = {"title": "singular value", "scale": scale}
    curves = (
        alt.Chart()
        .mark_line()
        .encode(
            x=x,
            y=alt.Y("value:Q", **y),
            color=alt.Color("which:N", sort=None),
            # Colour is never the only sign: random is dashed.
            strokeDash=alt.StrokeDash("which:N", sort=None),
        )
    )
    limit = alt.Chart(alt.NamedData("limit")).encode(y=alt.Y("edge:Q", **y))
    rule = limit.mark_rule(strokeDash=[2, 4])
    text = limit.mark_text(x="width", align="right", dy=-7, color=MIDDLE).encode(text="text:N")
    tooltip = [
        number_line("rank", places=0),
        number_line("own", THIS_MATRIX),
        number_line("random", RANDOM_MATRIX),
    ]
    layers = curves, rule, text, ruler(x, "rank", tooltip)
    return framed_spec(alt.layer(*layers, data=alt.NamedData("rows")))
