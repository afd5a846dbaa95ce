"""A value of two positions as a surface."""

from collections.abc import Sequence

import plotly.graph_objects as go
import torch
from torch import Tensor

from explorer.charts.plotly_frame import colour_scale, figure_of, scene
from explorer.charts.theme import Palette

HEIGHT = 520
HALF_AS_WIDE = 1.6
"""How much further away the eye is from one of two surfaces, which have half of the width each."""


def surface_of_positions(
    values: Tensor,
    unit: str,
    palette: Palette,
    beside: Sequence[Tensor] = (),
    *,
    half: bool = False,
) -> go.Figure:
    """The height at (query, key) is `values` (queries, keys); colours are even around zero.

    Heights and colours have the scale that holds the values `beside` too, those of surfaces
    that are compared with this one. One with `half` of the width is seen from further away, and
    its legend is below.
    """
    every = torch.cat([each.flatten() for each in (values, *beside)])
    low, top = float(every.min()), float(every.abs().max()) or 1.0
    signed = low < 0
    drawn = go.Surface(
        z=values.tolist(),
        cmin=-top if signed else 0.0,
        cmax=top,
        colorscale=colour_scale(palette.diverging if signed else palette.sequential),
        colorbar={"title": {"text": unit}, "thickness": 12, "len": 0.6, "outlinewidth": 0},
        hovertemplate=f"query %{{y}}, key %{{x}}<br>{unit} %{{z:.3~g}}<extra></extra>",
    )
    axes = scene(palette, x="key's position", y="query's position", z=unit)
    if beside:
        axes["zaxis"]["range"] = [min(low, 0.0), max(float(every.max()), 0.0)]
    if half:
        drawn.colorbar.update(orientation="h", len=0.8, y=0.0, yanchor="bottom")
        eye = axes["camera"]["eye"]
        axes["camera"]["eye"] = {name: HALF_AS_WIDE * place for name, place in eye.items()}
    return figure_of(drawn, height=HEIGHT, scene=axes)
