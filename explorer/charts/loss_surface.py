"""The loss along two directions as a surface with its contours, and the way of the training."""

from collections.abc import Sequence

import plotly.graph_objects as go
from torch import Tensor

from explorer.charts.plotly_frame import colour_scale, figure_of, scene
from explorer.charts.theme import Palette

HEIGHT = 560


def loss_surface(
    losses: Tensor,
    across: Sequence[float],
    down: Sequence[float],
    path: Sequence[tuple[int, float, float, float]],
    names: tuple[str, str],
    palette: Palette,
) -> go.Figure:
    """`losses` (down, across) in nats; `path` has of each snapshot a step, place and loss."""
    surface = go.Surface(
        x=list(across),
        y=list(down),
        z=losses.tolist(),
        colorscale=colour_scale(palette.sequential),
        contours={"z": {"show": True, "usecolormap": True, "project": {"z": True}}},
        colorbar={"title": {"text": "loss"}, "thickness": 12, "len": 0.6, "outlinewidth": 0},
        hovertemplate="%{x:.3~g}, %{y:.3~g}<br>loss %{z:.4~g}<extra></extra>",
    )
    drawn = [surface]
    if path:
        drawn.append(
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
    return figure_of(*drawn, height=HEIGHT, scene=axes)
