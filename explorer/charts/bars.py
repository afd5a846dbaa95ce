"""Bar charts: probabilities, also before and after; one number per part; vectors by dimension."""

import math
from collections.abc import Sequence
from typing import Any

from explorer.charts.vega_lite import (
    MIDDLE,
    Spec,
    around_zero,
    category,
    chart,
    finite,
    fixed,
    layer,
    number_line,
    number_text,
    quantity,
    text_line,
)
from explorer.text.visible_text import cut

MONOSPACE = "'Source Code Pro', monospace"
LONGEST_BAR_LABEL = 18
BEFORE, AFTER = "before", "after"
PROBABILITY = "probability"
BAR_ROW, AROUND_BARS = 24, 52
"""Pixels of a row, and of the axis below all rows."""
WIDEST_BLOCK_NAME = 270
AXIS_WIDTH = 56
"""Pixels of every value axis, so that the dimensions of several charts are aligned."""
FEWEST_NAMED = 32
"""With more dimensions than this, only some are named."""
SIGN_NAMES = ["above zero", "below zero"]


def _score_axis(score: str, values: Sequence[float]) -> Spec:
    """From 0 to 1 for a probability; for values, with zero in the middle where one is negative."""
    most = max(filter(math.isfinite, map(abs, values)), default=1.0) or 1.0
    domain = [0, 1] if score == PROBABILITY else [-most if min(values) < 0 else 0, most]
    return quantity("value", axis=None, scale={"domain": domain})


def score_bars(labels: Sequence[str], scores: Sequence[float], score: str = PROBABILITY) -> Spec:
    """A bar for each label, in this order; the number is written after the label."""
    rows = [
        {"order": order, "label": label, "value": finite(value), "number": number_text(value, 3)}
        for order, (label, value) in enumerate(zip(labels, scores, strict=True))
    ]
    bar = layer(
        {"type": "bar", "cornerRadiusEnd": 2, "height": {"band": 0.64}},
        rows,
        y={"field": "order", "type": "ordinal", "axis": _named_axis(260)},
        x=_score_axis(score, scores),
        tooltip=[text_line("label", "token"), text_line("number", score)],
    )
    return chart(bar, params=_names(labels, [row["number"] for row in rows]))


def before_after_bars(
    labels: Sequence[str], before: Sequence[float], after: Sequence[float], score: str = PROBABILITY
) -> Spec:
    """Two bars for every label, before over after, on one scale."""
    changes = [
        f"{number_text(old, 3)} → {number_text(new, 3)}"
        for old, new in zip(before, after, strict=True)
    ]
    rows = [
        {"order": order, "label": label, "when": when}
        | {"value": finite(values[order]), "number": number_text(values[order])}
        for when, values in ((BEFORE, before), (AFTER, after))
        for order, label in enumerate(labels)
    ]
    when, scale = {"sort": [BEFORE, AFTER]}, {"paddingInner": 0.28}
    bars = layer(
        {"type": "bar", "cornerRadiusEnd": 2},
        rows,
        y={"field": "order", "type": "ordinal", "axis": _named_axis(320), "scale": scale},
        yOffset=category("when", **when),
        x=_score_axis(score, [*before, *after]),
        color=category("when", legend={"symbolType": "square"}, **when),
        tooltip=[text_line("label", "token"), text_line("when"), text_line("number", score)],
    )
    return chart(bars, params=_names(labels, changes))


def _named_axis(widest: int) -> Spec:
    """Two labels may be equal, so the order places the bars and the labels only name them."""
    names = "names[datum.value] || ''"
    return {"labelExpr": names, "title": None, "labelLimit": widest, "labelFont": MONOSPACE}


def _names(labels: Sequence[str], numbers: Sequence[Any]) -> list[Spec]:
    both = zip(labels, numbers, strict=True)
    names = [f"\u2068{cut(label, LONGEST_BAR_LABEL)}\u2069  {number}" for label, number in both]
    return [{"name": "names", "value": names}]


def height_of(names: Sequence[str]) -> int:
    """The height of `block_bars` and `block_points`, in pixels."""
    return BAR_ROW * len(names) + AROUND_BARS


def block_bars(names: Sequence[str], values: Sequence[float], unit: str) -> Spec:
    """A bar from zero for each part of a model, in this order."""
    top = max([value for value in values if math.isfinite(value)], default=0.0) or 1.0
    x = quantity("value", title=unit, scale=fixed(0.0, top, zero=True))
    bar = {"type": "bar", "cornerRadiusEnd": 2, "height": {"band": 0.6}}
    return chart(_blocks(bar, names, values, x))


def block_points(names: Sequence[str], values: Sequence[float], unit: str, rule: float) -> Spec:
    """A point for each part on a logarithmic axis, and a rule at a number for comparison."""
    pairs = [*zip(names, values, strict=True)]
    positive = [(name, value) for name, value in pairs if math.isfinite(value) and value > 0]
    powers = [math.log10(value) for value in (*(value for _, value in positive), rule)]
    ends = 10 ** (min(powers) - 0.3), 10 ** (max(powers) + 0.3)
    ticks = [digit * 10.0**power for power in range(-12, 4) for digit in (1, 2, 5)]
    axis = {"format": "~g", "values": ticks}
    x = quantity("value", title=unit, scale=fixed(*ends, type="log"), axis=axis)
    point = {"type": "point", "filled": True, "size": 70, "opacity": 1}
    dashed = {"type": "rule", "strokeDash": [4, 4], "color": MIDDLE}
    return chart(
        layer(dashed, [{"rule": rule}], x=x | {"field": "rule"}),
        _blocks(point, [name for name, _ in positive], [value for _, value in positive], x),
    )


def _blocks(mark: Spec, names: Sequence[str], values: Sequence[float], x: Spec) -> Spec:
    rows = [
        {"block": name, "value": finite(value), "number": number_text(value, 6)}
        for name, value in zip(names, values, strict=True)
    ]
    y = category("block", title=None, axis={"labelLimit": WIDEST_BLOCK_NAME})
    return layer(
        mark, rows, y=y, x=x, tooltip=[text_line("block"), text_line("number", x["title"])]
    )


def dimension_bars(
    values: Sequence[float], order: Sequence[int], title: str, *, last: bool = False
) -> Spec:
    """Signed bars, one for each dimension, in this order; the `last` of several charts names them.

    A value that is not finite has no bar. Values above and below zero differ in colour and side.
    """
    total, rows = 0.0, list[dict[str, Any]]()
    for place, dimension in enumerate(order):
        value = values[dimension]
        total += value
        row = {"place": place, "dimension": dimension, "value": finite(value), "sum": finite(total)}
        rows.append(row | {"side": SIGN_NAMES[0] if value > 0 else SIGN_NAMES[1]})
    every = max(1, math.ceil(len(order) / FEWEST_NAMED))
    names = ["" if place % every else str(dimension) for place, dimension in enumerate(order)]
    named = {"labelExpr": "names[datum.value] || ''", "title": "dimension", "labelAngle": 0}
    value_axis = {"minExtent": AXIS_WIDTH, "maxExtent": AXIS_WIDTH, "tickCount": 4}
    axis = named if last else {"labels": False, "title": None}
    bars = layer(
        {"type": "bar", "width": {"band": 0.8}},
        x={"field": "place", "type": "ordinal", "sort": None, "axis": axis},
        y=quantity("value", title=title, scale=fixed(*around_zero(values)), axis=value_axis),
        # The theme's first two colours, which every reader can tell apart.
        color={"field": "side", "type": "nominal", "scale": {"domain": SIGN_NAMES}, "legend": None},
        tooltip=[
            number_line("dimension", places=0),
            number_line("value", title, 6),
            number_line("sum", "sum so far", 6),
        ],
    )
    return chart(bars, rows=rows, params=[{"name": "names", "value": names}])
