"""The loss around the trained weights, and the way of the training over it."""

from __future__ import annotations

from functools import partial

import streamlit as st
import torch

from explorer.analysis.loss_landscape import (
    Plane,
    losses,
    random_plane,
    training_plane,
    weights_of,
)
from explorer.app.controls import one_of
from explorer.app.messages import say
from explorer.catalog import ModelError
from explorer.charts.loss_surface import loss_surface
from explorer.charts.theme import palette
from explorer.components.chart import plotly_chart
from explorer.snippets.inside_training_code import landscape_lines
from explorer.views.circuits.pieces import piece_by_piece
from explorer.views.inside_training.chosen_run import CodeLines, InsideRun
from explorer.views.inside_training.measuring import (
    TOO_LONG,
    batch_tokens,
    batch_words,
    measured_batch,
)

TRAINING, RANDOM = "Where the training went", "Random"
SIDE = 17
"""Places along each direction; the middle one is the trained model where the plane is random."""
MOST_VALUES = 100_000_000
"""Numbers of all snapshots together that are held at once."""


def draw_landscape(chosen: InsideRun) -> CodeLines:
    """A surface over two directions, of the loss on held-out examples."""
    kind = one_of("Directions", "landscape_by", (TRAINING, RANDOM))
    if len(chosen.steps) * chosen.parameters > MOST_VALUES:
        st.text(TOO_LONG)
        return None
    if kind == TRAINING and len(chosen.steps) < 3:
        st.text("There are too few snapshots for two directions of the training: take random ones.")
        return None
    try:
        snapshots = [weights_of(chosen.opened(step).model) for step in chosen.steps]
        model = chosen.opened(chosen.steps[-1]).model
    except ModelError as error:
        say(str(error))
        return None
    plane = training_plane(snapshots) if kind == TRAINING else random_plane(snapshots, seed=0)
    across, down = (_places(plane, axis, kind == RANDOM) for axis in (0, 1))
    batch = measured_batch(chosen)

    def row(at: int) -> torch.Tensor:
        (found,) = losses(model, batch, plane, across, down[at : at + 1])
        return found

    rows = piece_by_piece(
        chosen.first,
        "landscape",
        [("landscape", kind, chosen.snapshots[chosen.steps[-1]], at) for at in range(SIDE)],
        row,
        lambda made: made.nbytes,
        SIDE * SIDE * batch_tokens(chosen) * chosen.parameters,
        "The loss, row by row",
        TOO_LONG,
    )
    if rows is None:
        return None
    grid = torch.stack(rows)
    path = _path(chosen, plane, batch_loss_at(chosen, plane)) if kind == TRAINING else []
    figure = loss_surface(
        grid,
        across,
        down,
        path,
        ("first direction", "second direction"),
        palette(st.context.theme.type),
    )
    table = {
        "first direction": across * SIDE,
        "second direction": [y for y in down for _ in across],
        "loss": grid.flatten().tolist(),
    }
    title = f"Loss around the weights of {chosen.run.title}"
    plotly_chart(figure, key="landscape", title=title, table=table)
    least = float(grid.min())
    words = (
        f"The loss on {batch_words(chosen)}, at {SIDE} × {SIDE} places; {SIDE * SIDE} forward "
        f"passes, the lowest {least:.3g} nats a label. "
    )
    if kind == TRAINING:
        words += (
            "The directions are the two in which the snapshots lie furthest from the last one: "
            f"{plane.explained:.1%} of the squared distances from it lie in this plane. The line "
            "is the path of the training projected onto it."
        )
    else:
        words += (
            "Both directions are random (seed 0), each row of a matrix as long as that row of the "
            "weights; biases and norms stay. The trained model is in the middle."
        )
    st.caption(words)
    return partial(landscape_lines, chosen.run, is_random=kind == RANDOM)


def _places(plane: Plane, axis: int, is_random: bool) -> list[float]:
    """Along a direction: a quarter more than the training spans, or than from −1 to 1."""
    values = plane.path[:, axis]
    low, high = float(values.min()), float(values.max())
    if low == high == 0.0 or is_random:
        low, high = -1.0, 1.0
    room = 0.25 * (high - low) or 1.0
    return torch.linspace(low - room, high + room, SIDE).tolist()


def batch_loss_at(chosen: InsideRun, plane: Plane) -> list[float]:
    """The loss of the place in the plane of every snapshot."""
    model, batch = chosen.opened(chosen.steps[-1]).model, measured_batch(chosen)
    return [float(next(losses(model, batch, plane, [float(x)], [float(y)]))) for x, y in plane.path]


def _path(
    chosen: InsideRun, plane: Plane, heights: list[float]
) -> list[tuple[int, float, float, float]]:
    return [
        (step, float(x), float(y), height)
        for step, (x, y), height in zip(chosen.steps, plane.path, heights, strict=True)
    ]
