"""Signed bars with a name and a number each; a click on a row is reported."""

from collections.abc import Sequence
from dataclasses import dataclass

from explorer.charts.bars import SIGN_NAMES
from explorer.charts.vega_lite import Spec, around_zero, chart, fixed, layer, quantity, text_line
from explorer.text.number_format import signed

PICKED = "picked"
"""The name of the selection that a click makes; its field is `place`."""


@dataclass(frozen=True)
class SourceBar:
    """A source of a query or key, the token that it read, and its part of the score."""

    source: str
    read: str
    value: float


def source_bars(bars: Sequence[SourceBar], ends: tuple[float, float]) -> Spec:
    """The bars in this order on an axis with these `ends`."""
    rows = [
        {
            "place": place,
            "source": bar.source,
            "reads": bar.read,
            "value": bar.value,
            "number": signed(bar.value),
            "side": SIGN_NAMES[0] if bar.value > 0 else SIGN_NAMES[1],
        }
        for place, bar in enumerate(bars)
    ]
    named = (" ".join(filter(None, (bar.source, bar.read))) for bar in bars)
    names = [f"{name}  {row['number']}" for name, row in zip(named, rows, strict=True)]
    axis = {"labelExpr": "names[datum.value] || ''", "title": None, "labelLimit": 240}
    y = {"field": "place", "type": "ordinal", "axis": axis}
    x = quantity("value", title=None, scale=fixed(*around_zero(ends)), axis={"tickCount": 4})
    colour = {"field": "side", "type": "nominal", "scale": {"domain": SIGN_NAMES}, "legend": None}
    bar_mark: Spec = {"type": "bar", "height": {"band": 0.62}, "cornerRadiusEnd": 2}
    whole_row: Spec = {"type": "rect", "opacity": 0, "cursor": "pointer"}
    select: Spec = {"type": "point", "fields": ["place"], "on": "click"}
    tooltip = [text_line("source"), text_line("reads", "token read"), text_line("number", "part")]
    rows_to_click = layer(whole_row, y=y, x={"value": 0}, x2={"value": "width"}, tooltip=tooltip)
    return chart(
        layer(bar_mark, y=y, x=x, color=colour),
        rows_to_click | {"params": [{"name": PICKED, "select": select}]},
        rows=rows,
        params=[{"name": "names", "value": names}],
    )
