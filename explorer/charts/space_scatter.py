"""Token embeddings in three dimensions."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go
from torch import Tensor

from explorer.charts.plotly_frame import figure_of, plain_label, scene
from explorer.charts.theme import Palette

HEIGHT = 560


def embedding_scatter(
    places: Tensor,
    labels: Sequence[str],
    groups: Sequence[str],
    names: Sequence[str],
    shares: Sequence[float],
    palette: Palette,
) -> go.Figure:
    """Points at `places` (n, 3), drawn group by group in the order of `names`.

    The first group is the background, small and muted; points of the second have their label
    beside them. `shares` are the parts of the variance on each axis.
    """
    traces = []
    for order, name in enumerate(names):
        members = [index for index, group in enumerate(groups) if group == name]
        texts = [labels[index] for index in members]  # drawn on a canvas, never as markup
        x, y, z = (places[members, axis].tolist() for axis in range(3))
        colour = palette.series[order - 1] if order else palette.muted
        shape = {"symbol": ("circle", "diamond", "circle-open")[order % 3]}
        traces.append(
            go.Scatter3d(
                x=x,
                y=y,
                z=z,
                name=name,
                text=texts,
                customdata=[plain_label(text) for text in texts],
                mode="markers+text" if order == 1 else "markers",
                marker={"size": 5 if order else 2, "color": colour, "opacity": 0.45, **shape}
                | ({"opacity": 1.0} if order else {}),
                textfont={"size": 12, "color": palette.text, "family": "monospace"},
                hovertemplate=f"%{{customdata}}<br>{name}<extra></extra>",
            )
        )
    titles = [f"component {n + 1} ({share:.0%})" for n, share in enumerate(shares)]
    axes = scene(palette, **dict(zip("xyz", titles, strict=True)))
    legend = {"orientation": "h", "y": 1.02, "itemsizing": "constant"}
    return figure_of(*traces, height=HEIGHT, scene=axes, legend=legend)
