"""Heads as points and as cells of their programs, and the sources of a score as signed bars."""

from collections import Counter
from collections.abc import Sequence

from explorer.charts.bars import SIGN_NAMES
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
from explorer.text.number_format import signed

NAMED, OTHERS, GREY = 6, "other programs", 5
"""Programs with a colour, the others, and the place of their grey in the colours of the theme."""
LEGEND = {"orient": "right", "labelLimit": 190, "symbolOpacity": 1, "symbolType": "square"}
NAMED_POINTS = 24
"""With more points, none has its name beside it."""
TEXT: Spec = {"type": "text", "color": MIDDLE}
RING = "#d55e00"
"""An orange with enough contrast on the light and the dark page."""


def _clickable(layer: Spec, *fields: str) -> Spec:
    """The layer, of which a click selects a mark by these `fields`."""
    select = {"type": "point", "fields": fields, "on": "click"}
    return layer | {"params": [{"name": "picked", "select": select}]}


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
    legend = {"title": "layer", "orient": "right", **steps}
    colour = quantity("layer", scale=scale, legend=legend if last else None)
    dot: Spec = {"type": "circle", "size": 90, "opacity": 1, "stroke": MIDDLE, "strokeWidth": 1}
    ring: Spec = {"type": "point", "size": 380, "strokeWidth": 3, "opacity": 1, "color": RING}
    lines = map(number_line, ("layer", "head", "x", "y"), ("layer", "head", *titles))
    circles = layer({**dot, "cursor": "pointer"}, rows, x=x, y=y, color=colour, tooltip=[*lines])
    around = [row for row in rows if (row["layer"], row["head"]) == chosen]
    named = [{**row, "name": f"{row['layer']}.{row['head']}"} for row in rows[:NAMED_POINTS]]
    names = layer({**TEXT, "dy": -18}, named, x=x, y=y, text={"field": "name"})
    few = [names] * (len(named) == len(rows))
    return chart(_clickable(circles, "layer", "head"), layer(ring, around, x=x, y=y), *few)


def source_bars(
    bars: Sequence[tuple[str, str, float]], ends: tuple[float, float], title: str
) -> Spec:
    """Bars on an axis with these `ends`: a source, the token that it read, its part of the score.

    A click on a row selects its `place`.
    """
    rows = [
        {
            "place": place,
            "source": source,
            "reads": read,
            "value": value,
            "number": signed(value),
            "side": SIGN_NAMES[0] if value > 0 else SIGN_NAMES[1],
        }
        for place, (source, read, value) in enumerate(bars)
    ]
    names = [f"{' '.join(filter(None, bar[:2]))}  {signed(bar[2])}" for bar in bars]
    axis = {"labelExpr": "names[datum.value] || ''", "title": None, "labelLimit": 240}
    y = {"field": "place", "type": "ordinal", "axis": axis}
    about = {"title": "contribution to the score", "axis": {"tickCount": 4}}
    x = quantity("value", scale=fixed(*around_zero(ends)), **about)
    colour = {"field": "side", "type": "nominal", "scale": {"domain": SIGN_NAMES}, "legend": None}
    bar_mark: Spec = {"type": "bar", "height": {"band": 0.62}, "cornerRadiusEnd": 2}
    whole_row: Spec = {"type": "rect", "opacity": 0, "cursor": "pointer"}
    tooltip = [text_line("source"), text_line("reads", "token read"), text_line("number", "part")]
    rows_to_click = layer(whole_row, y=y, x={"value": 0}, x2={"value": "width"}, tooltip=tooltip)
    return chart(
        layer(bar_mark, y=y, x=x, color=colour),
        _clickable(rows_to_click, "place"),
        rows=rows,
        params=[{"name": "names", "value": names}],
        title={"text": title, "anchor": "start", "fontSize": 14, "offset": 12},
    )


def program_grid(heads: Rows, down: str, across: str) -> Spec:
    """A cell for each row, with a place `down` and `across`, a program, a mixture and an overlap.

    The most frequent programs have a colour each; a smaller overlap is fainter.
    """
    counts = Counter(row["program"] for row in heads)
    named = [program for program, _ in counts.most_common(NAMED)]
    rows = [row if row["program"] in named else {**row, "program": OTHERS} for row in heads]
    domain = [*named[:GREY], *[OTHERS] * (len(counts) > NAMED), *named[GREY:]]
    legend = LEGEND | {"values": sorted(domain, key=OTHERS.__eq__)}
    axis = {"labelAngle": 0, "labelOverlap": "greedy"}
    drawn = layer(
        {"type": "rect"},
        rows,
        x=category(across, axis=axis),
        y=category(down, axis=axis),
        color=category("program", scale={"domain": domain}, legend=legend),
        opacity=quantity("overlap", scale=fixed(0, 1, range=[0.25, 1]), legend=None),
        tooltip=[text_line(down), text_line(across), text_line("mixture"), number_line("overlap")],
    )
    return chart(drawn)
