"""Two plotly figures: rollout as a Sankey diagram, and parameters as an icicle."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
from torch import Tensor

from explorer.catalog.parameters import ParameterNode
from explorer.charts.plotly_frame import figure_of, plain_label
from explorer.charts.theme import Palette


def parameter_boxes(
    part: ParameterNode, name: str = "0", parent: str = "", times: int = 1
) -> Iterator[tuple[str, str, ParameterNode, int]]:
    """ID, parent's ID, part and number of parameters of every part that has any.

    A part of several equal layers counts once for each of them.
    """
    if part.count:
        yield name, parent, part, part.count * times
        for place, child in enumerate(part.children):
            yield from parameter_boxes(child, f"{name}/{place}", name, times * part.times)


def parameter_icicle(node: ParameterNode, palette: Palette) -> go.Figure:
    """The whole model at the left; the boxes to the right of a part add up to it."""
    boxes = [*parameter_boxes(node)]
    colours = []
    for name, _, _, _ in boxes:
        path = name.split("/")
        place = int(path[1]) % len(palette.series) if len(path) > 1 else None
        colours.append(palette.muted if place is None else palette.series[place])
    icicle = go.Icicle(
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
        pathbar={"thickness": 28},
    )
    return figure_of(icicle, uniformtext={"minsize": 12, "mode": "hide"})  # what fits is written


EDGES_DRAWN = 14
"""The most edges between two layers."""


@dataclass(frozen=True)
class FlowEdge:
    """The `share` of token `upper` above `layer` that comes from token `lower` below it."""

    layer: int
    lower: int
    upper: int
    share: float


def strongest_edges(shares: Sequence[Tensor], most: int = EDGES_DRAWN) -> list[FlowEdge]:
    """The largest shares of each layer; `shares` are (upper tokens, lower tokens) by layer."""
    edges = []
    for layer, share in enumerate(shares):
        largest = share.flatten().topk(min(most, share.numel()))
        for value, place in zip(largest.values.tolist(), largest.indices.tolist(), strict=True):
            upper, lower = divmod(place, share.shape[1])
            if value > 0:
                edges.append(FlowEdge(layer, lower, upper, value))
    return edges


def rollout_sankey(
    edges: Sequence[FlowEdge], tokens: Sequence[str], layers: int, palette: Palette
) -> go.Figure:
    """The text at the left, the token after the last layer at the right."""
    places = sorted(
        {(edge.layer, edge.lower) for edge in edges}
        | {(edge.layer + 1, edge.upper) for edge in edges}
    )
    number = {place: index for index, place in enumerate(places)}
    names = [plain_label(token, 16) for token in tokens]
    sankey = go.Sankey(
        arrangement="snap",
        node={
            "label": [names[token] for _, token in places],
            "customdata": [
                f"after layer {level - 1}" if level else "the text" for level, _ in places
            ],
            "x": [min(0.999, max(0.001, level / layers)) for level, _ in places],
            "y": [min(0.999, max(0.001, (token + 0.5) / len(tokens))) for _, token in places],
            "pad": 8,
            "thickness": 12,
            "color": [palette.series[token % len(palette.series)] for _, token in places],
            "line": {"width": 0},
            "hovertemplate": "%{label}, %{customdata}: %{value:.3~g}<extra></extra>",
        },
        link={
            "source": [number[edge.layer, edge.lower] for edge in edges],
            "target": [number[edge.layer + 1, edge.upper] for edge in edges],
            "value": [edge.share for edge in edges],
            "color": [_translucent(palette, edge.lower) for edge in edges],
            "hovertemplate": "%{source.label} → %{target.label}: %{value:.3~g}<extra></extra>",
        },
        textfont={"color": palette.text, "family": "monospace", "size": 12},
    )
    return figure_of(sankey)


def _translucent(palette: Palette, token: int) -> str:
    colour = palette.series[token % len(palette.series)]
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, 0.35)"
