"""Heads as points on two axes, coloured by layer; a click on a point picks its head."""

from explorer.charts.vega_lite import (
    MIDDLE,
    Rows,
    Spec,
    around_zero,
    chart,
    fixed,
    layer,
    number_line,
    quantity,
)

RING = "#d55e00"
"""An orange with enough contrast on the light and the dark page."""


def head_points(rows: Rows, titles: tuple[str, str], chosen: tuple[int, int]) -> Spec:
    """The chart of rows with a layer, a head, and finite x and y; a ring is around the `chosen`."""
    x, y = (
        quantity(name, title=title, scale=fixed(*around_zero([row[name] for row in rows])))
        for name, title in zip("xy", titles, strict=True)
    )
    last = max((row["layer"] for row in rows), default=0)
    # The ramp of the theme begins with the page's background, so layer 0 is not at its beginning.
    scale = {"domain": [-0.25 * (last + 1), last]}
    steps = {"format": "d", "values": sorted({0, last // 2, last})}
    legend = {"title": "layer", "orient": "right", **steps} if last else None
    dot: Spec = {"type": "circle", "size": 90, "opacity": 1, "stroke": MIDDLE, "strokeWidth": 1}
    ring: Spec = {"type": "point", "size": 380, "strokeWidth": 3, "opacity": 1, "color": RING}
    names = [number_line("layer"), number_line("head")]
    circles = layer(
        {**dot, "cursor": "pointer"},
        rows,
        x=x,
        y=y,
        color=quantity("layer", scale=scale, legend=legend),
        tooltip=[*names, number_line("x", titles[0]), number_line("y", titles[1])],
    )
    select = {"type": "point", "fields": ["layer", "head"], "on": "click"}
    around = [row for row in rows if (row["layer"], row["head"]) == chosen]
    return chart(
        circles | {"params": [{"name": "picked", "select": select}]},
        layer(ring, around, x=x, y=y),
    )
