"""Probabilities as bars: the likeliest first, each with its number.

The Overview page draws them last, so altair (0.3 s) is imported when they are first drawn.
"""

from collections.abc import Sequence
from functools import cache

from explorer.charts.fill import Spec, filled_chart, finite, written
from explorer.text.labels import cut

MONOSPACE = "'Source Code Pro', monospace"
LONGEST_BAR_LABEL = 18


def probability_bars(labels: Sequence[str], probabilities: Sequence[float]) -> Spec:
    """A bar for each label, in the order they come; the number stands beside the label."""
    rows = [
        {
            "label": label,
            "value": finite(value),
            "number": written(value, 3),
            "order": order,
            "shown": f"\u2068{cut(label, LONGEST_BAR_LABEL)}\u2069  {written(value, 3)}",
        }
        for order, (label, value) in enumerate(zip(labels, probabilities, strict=True))
    ]
    return filled_chart(_bars(), {"labels": rows})


@cache
def _bars() -> Spec:
    import altair as alt

    from explorer.charts.frame import framed_spec, inside_layer, text_line

    # Two labels may be equal, so a bar stands by its order and is only named by its label.
    names = "datum.value == null ? '' : data('labels')[datum.value].shown"
    axis = alt.Axis(labelExpr=names, title=None, labelLimit=260, labelFont=MONOSPACE)
    chart = (
        alt.Chart(alt.NamedData("labels"))
        .mark_bar(cornerRadiusEnd=2, height=alt.RelativeBandSize(band=0.64))
        .encode(
            y=alt.Y("order:O", axis=axis),
            x=alt.X("value:Q", axis=None, scale=alt.Scale(domain=[0, 1])),
            tooltip=[text_line("label", "token"), text_line("number", "probability")],
        )
    )
    return inside_layer(framed_spec(chart))
