"""What a model considers, as bars: the likeliest first, each with its number."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.charts.frame import Spec, framed, told
from explorer.text.labels import cut

MONOSPACE = "'Source Code Pro', monospace"
LONGEST = 18


def bars(labels: Sequence[str], values: Sequence[float]) -> Spec:
    """A Vega-Lite chart of probabilities; labels stay in the order they come.

    The number stands with the label, so that the numbers are one column. The rows stand in
    a layer, where they are sent as they are: Streamlit turns those at the top into a table
    of Arrow, and would load pandas, 65 MB, for ten numbers.
    """
    rows = [
        {"label": label, "value": value, "said": f"{value:.3f}", "order": order}
        for order, (label, value) in enumerate(zip(labels, values, strict=True))
    ]
    for row in rows:
        row["shown"] = f"\u2068{cut(str(row['label']), LONGEST)}\u2069  {row['said']}"
    # Two labels may look alike, so a bar stands by its order and is only named by its label.
    names = "datum.value == null ? '' : data('labels')[datum.value].shown"
    y: Spec = {
        "field": "order",
        "type": "ordinal",
        "axis": {"labelExpr": names, "title": None, "labelLimit": 260, "labelFont": MONOSPACE},
    }
    x: Spec = {
        "field": "value",
        "type": "quantitative",
        "axis": None,
        "scale": {"domain": [0, 1]},
    }
    tooltip = [told("label", "token", places=None), told("said", "probability", places=None)]
    layer: Spec = {
        "data": {"name": "labels", "values": rows},
        "mark": {"type": "bar", "cornerRadiusEnd": 2, "height": {"band": 0.64}},
        "encoding": {"y": y, "x": x, "tooltip": tooltip},
    }
    return framed({"layer": [layer]})
