"""A value of two positions as a surface."""

from __future__ import annotations

import plotly.graph_objects as go
from torch import Tensor

from explorer.charts.plotly_frame import colour_scale, figure_of, scene
from explorer.charts.theme import Palette

HEIGHT = 520


def surface_of_positions(values: Tensor, unit: str, palette: Palette) -> go.Figure:
    """The height at (query, key) is `values` (queries, keys); colours are even around zero."""
    top = float(values.abs().max()) or 1.0
    signed = bool((values < 0).any())
    drawn = go.Surface(
        z=values.tolist(),
        cmin=-top if signed else 0.0,
        cmax=top,
        colorscale=colour_scale(palette.diverging if signed else palette.sequential),
        colorbar={"title": {"text": unit}, "thickness": 12, "len": 0.6, "outlinewidth": 0},
        hovertemplate=f"query %{{y}}, key %{{x}}<br>{unit} %{{z:.3~g}}<extra></extra>",
    )
    axes = scene(palette, x="key's position", y="query's position", z=unit)
    return figure_of(drawn, height=HEIGHT, scene=axes)
