"""Heads as points on two axes, coloured by layer, and as cells, coloured by their program."""

from collections import Counter

from explorer.charts.vega_lite import (
    MIDDLE,
    Rows,
    Spec,
    around_zero,
    category,
    chart,
    fixed,
    layer,
    number_line,
    quantity,
    text_line,
)

NAMED, OTHERS = 9, "other programs"
LEGEND = {"labelLimit": 320, "columns": 3, "symbolOpacity": 1, "symbolType": "square"}

RING = "#d55e00"
"""An orange with enough contrast on the light and the dark page."""


def head_points(rows: Rows, titles: tuple[str, str], chosen: tuple[int, int]) -> Spec:
    """The chart of rows with a layer, a head, and finite x and y; a ring is around the `chosen`.

    A click on a point picks its head.
    """
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


def program_grid(heads: Rows, down: str, across: str) -> Spec:
    """A cell for each row, with a place `down` and `across`, a program, a mixture and an overlap.

    The most frequent programs have a colour each; a smaller overlap is paler.
    """
    counts = Counter(row["program"] for row in heads)
    named = [program for program, _ in counts.most_common(NAMED)]
    others = {"program": OTHERS}
    rows = [row if row["program"] in named else {**row, **others} for row in heads]
    domain = [*named, *([OTHERS] if len(counts) > NAMED else [])]
    axis = {"labelAngle": 0, "labelOverlap": "greedy"}
    drawn = layer(
        {"type": "rect"},
        rows,
        x=category(across, axis=axis),
        y=category(down, axis=axis),
        color=category("program", scale={"domain": domain}, legend=LEGEND),
        opacity=quantity("overlap", scale=fixed(0, 1, range=[0.25, 1]), legend=None),
        tooltip=[text_line(down), text_line(across), text_line("mixture"), number_line("overlap")],
    )
    return chart(drawn)
