"""Heads as points on two axes, coloured by layer; a click on a point chooses the head."""

from collections.abc import Sequence
from dataclasses import dataclass

from explorer.charts.vega_lite import (
    MIDDLE,
    Spec,
    around_zero,
    chart,
    fixed,
    layer,
    number_line,
    quantity,
    text_line,
)

RING = "#d55e00"
"""An orange with enough contrast on the light and the dark page."""
PICKED = "picked"
"""The name of the selection that a click makes; its fields are `layer` and `head`."""


@dataclass(frozen=True)
class HeadPoint:
    """A head and its place on both axes."""

    layer: int
    head: int
    x: float
    y: float


def head_points(points: Sequence[HeadPoint], titles: tuple[str, str], chosen: HeadPoint) -> Spec:
    """The chart of these heads, all of finite numbers; a ring is around the `chosen` one.

    The darkest circles are the last layers in the light theme, the lightest in the dark one.
    """
    x, y = (
        quantity(name, title=title, scale=fixed(*around_zero([getattr(p, name) for p in points])))
        for name, title in zip("xy", titles, strict=True)
    )
    last = max((point.layer for point in points), default=0)
    rows = [{"name": f"layer {p.layer}, head {p.head}", **vars(p)} for p in points]
    tooltip = [text_line("name", "head"), number_line("x", titles[0]), number_line("y", titles[1])]
    # The ramp of the theme begins with the page's background, so layer 0 is not at its beginning.
    scale = {"domain": [-0.25 * (last + 1), last]}
    steps = {"format": "d", "values": sorted({0, last // 2, last})}
    legend = {"title": "layer", "orient": "right", **steps} if last else None
    dot: Spec = {"type": "circle", "size": 90, "opacity": 1, "stroke": MIDDLE, "strokeWidth": 1}
    ring: Spec = {"type": "point", "size": 380, "strokeWidth": 3, "opacity": 1, "color": RING}
    select: Spec = {"type": "point", "fields": ["layer", "head"], "on": "click"}
    circles = layer(
        dot | {"cursor": "pointer"},
        rows,
        x=x,
        y=y,
        color=quantity("layer", scale=scale, legend=legend),
        tooltip=tooltip,
    )
    around = [vars(chosen)] if chosen in points else []
    return chart(
        circles | {"params": [{"name": PICKED, "select": select}]},
        layer(ring, around, x=x, y=y),
    )
