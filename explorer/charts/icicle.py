"""The parameters of a model as an icicle: a box is as tall as its share."""

from collections.abc import Iterator

import plotly.graph_objects as go

from explorer.catalog.parameters import ParameterNode
from explorer.charts.plotly_frame import figure_of, plain_label
from explorer.charts.theme import Palette

ICICLE_HEIGHT = 420


def parameter_boxes(node: ParameterNode) -> Iterator[tuple[str, str, ParameterNode, int]]:
    """ID, parent's ID, part and its parameters, of every part that has any.

    Below layers that are alike, each part counts as often as there are layers.
    """

    def below(
        part: ParameterNode, name: str, parent: str, times: int
    ) -> Iterator[tuple[str, str, ParameterNode, int]]:
        if not part.count:
            return
        yield name, parent, part, part.count * times
        for place, child in enumerate(part.children):
            yield from below(child, f"{name}/{place}", name, times * part.times)

    yield from below(node, "0", "", 1)


def parameter_icicle(node: ParameterNode, palette: Palette) -> go.Figure:
    """The whole model at the left; the boxes right of a part add up to it."""
    boxes = [*parameter_boxes(node)]
    colours = []
    for name, _, _, _ in boxes:
        path = name.split("/")
        place = int(path[1]) % len(palette.series) if len(path) > 1 else None
        colours.append(palette.muted if place is None else palette.series[place])
    drawn = go.Icicle(
        ids=[name for name, _, _, _ in boxes],
        parents=[parent for _, parent, _, _ in boxes],
        labels=[plain_label(part.name, 40) for _, _, part, _ in boxes],
        values=[count for _, _, _, count in boxes],
        customdata=[plain_label(part.symbols or part.numbers, 80) for _, _, part, _ in boxes],
        branchvalues="total",
        sort=False,
        marker={"colors": colours, "line": {"color": palette.background, "width": 1}},
        texttemplate="%{label}  %{percentRoot:.1%}",
        hovertemplate="%{label}<br>%{value:,} parameters, %{percentRoot:.2%}<br>%{customdata}"
        "<extra></extra>",
        textfont={"color": palette.background},
        leaf={"opacity": 1},
        pathbar={"visible": False},
    )
    return figure_of(drawn, height=ICICLE_HEIGHT)
