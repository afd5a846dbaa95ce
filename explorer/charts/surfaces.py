"""Surfaces: a value of two positions, and the loss along two directions of the weights."""

from collections.abc import Sequence

import plotly.graph_objects as go
import torch
from torch import Tensor

from explorer.charts.plotly_frame import colour_scale, figure_of, scene
from explorer.charts.theme import Palette


def surface_of_positions(
    values: Tensor, unit: str, palette: Palette, compared: Sequence[Tensor] = ()
) -> go.Figure:
    """The height at (query, key) is `values` (queries, keys); colours are symmetric around zero.

    The scales of heights and colours also include the `compared` surfaces on the same page.
    """
    every = torch.cat([heights.flatten() for heights in (values, *compared)])
    low, top = float(every.min()), float(every.abs().max()) or 1.0
    signed = low < 0
    surface = go.Surface(
        z=values.tolist(),
        cmin=-top if signed else 0.0,
        cmax=top,
        colorscale=colour_scale(palette.diverging if signed else palette.sequential),
        colorbar={"title": {"text": unit}, "thickness": 12, "len": 0.6, "outlinewidth": 0},
        hovertemplate=f"query %{{y}}, key %{{x}}<br>{unit} %{{z:.3~g}}<extra></extra>",
    )
    axes = scene(palette, x="key's position", y="query's position", z=unit)
    if compared:
        axes["zaxis"]["range"] = [min(low, 0.0), max(float(every.max()), 0.0)]
    return figure_of(surface, scene=axes)


def loss_surface(
    losses: Tensor,
    across: Sequence[float],
    down: Sequence[float],
    path: Sequence[tuple[int, float, float, float]],
    names: tuple[str, str],
    palette: Palette,
) -> go.Figure:
    """The loss with its contours, and the path of the training.

    `losses` (down, across) in nats; `path` has the step, place and loss of each snapshot.
    """
    surface = go.Surface(
        x=list(across),
        y=list(down),
        z=losses.tolist(),
        colorscale=colour_scale(palette.sequential),
        contours={"z": {"show": True, "usecolormap": True, "project": {"z": True}}},
        colorbar={"title": {"text": "loss"}, "thickness": 12, "len": 0.6, "outlinewidth": 0},
        hovertemplate="%{x:.3~g}, %{y:.3~g}<br>loss %{z:.4~g}<extra></extra>",
    )
    traces = [surface]
    if path:
        traces.append(
            go.Scatter3d(
                x=[x for _, x, _, _ in path],
                y=[y for _, _, y, _ in path],
                z=[z for _, _, _, z in path],
                text=[f"step {step:,}" for step, *_ in path],
                mode="lines+markers",
                line={"color": palette.series[1], "width": 5},
                marker={"color": palette.series[1], "size": 3.5},
                hovertemplate="%{text}<br>loss %{z:.4~g}<extra></extra>",
                showlegend=False,
            )
        )
    axes = scene(palette, x=names[0], y=names[1], z="loss") | {"aspectmode": "cube"}
    return figure_of(*traces, scene=axes)
