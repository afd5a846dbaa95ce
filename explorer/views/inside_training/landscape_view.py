"""The loss around the trained weights, and the path of the training over it."""

import streamlit as st
import torch
from torch import Tensor

from explorer.analysis.loss_landscape import Plane, losses, random_plane, training_plane, weights_of
from explorer.app.controls import one_of
from explorer.app.messages import say
from explorer.catalog import ModelError
from explorer.catalog.pass_budget import reserve
from explorer.charts.surfaces import loss_surface
from explorer.charts.theme import palette
from explorer.components.chart import plotly_chart
from explorer.inference.results_cache import cached
from explorer.runs.run import Run, open_folder
from explorer.text.number_format import three
from explorer.views.inside_training.chosen_run import TOO_LARGE_TO_MEASURE, InsideRun, has_room
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.measurement import Report, measurements

TRAINING, RANDOM = "Where the training went", "Random"
SIDE = 17
"""Points along each direction; on a random plane the middle one is the trained model."""
BYTES_A_VALUE = 24
"""For every weight of every snapshot: twice in single and twice in double precision."""
COPIES = 4
"""More copies of the weights: the model, its place, and the two directions."""


def draw_landscape(chosen: InsideRun) -> Script | None:
    """Draw the loss on held-out examples as a surface over two directions."""
    kind = one_of("landscape_by", (TRAINING, RANDOM))
    if kind == TRAINING and len(chosen.steps) < 3:
        st.text("This run has too few snapshots for two directions: choose random ones.")
        return None
    values = len(chosen.steps) * chosen.parameters
    if not has_room(BYTES_A_VALUE * values + COPIES * chosen.first.bytes):
        return None
    try:
        measurement = _measure(chosen, kind)
    except ModelError as error:
        say(str(error))
        return None
    if measurement is None:
        return None
    plane, rows, heights = measurement
    across, down = _places(plane, kind)
    grid, directions = torch.stack(rows), ("first direction", "second direction")
    on_path = zip(chosen.steps, plane.path.tolist(), heights.tolist(), strict=True)
    path = [(step, x, y, loss) for step, (x, y), loss in on_path] if kind == TRAINING else []
    figure = loss_surface(grid, across, down, path, directions, palette(st.context.theme.type))
    places = across * SIDE, [y for y in down for _ in across]
    table = {**dict(zip(directions, places, strict=True)), "loss": grid.flatten().tolist()}
    title = f"Loss around the weights of {chosen.run.title}"
    plotly_chart(figure, key="landscape", title=title, table=table)
    words = (
        f"The loss on {chosen.held_out_words} at {SIDE} × {SIDE} points of a plane through the "
        f"weights: {SIDE * SIDE + len(path)} forward passes in all. "
        f"{lowest_in_words(grid, heights)} "
    )
    if kind == TRAINING:
        words += (
            "The two directions are those in which the snapshots differ most from the last one: "
            f"{plane.explained:.1%} of the squared distances from it lie in this plane. The line "
            f"is the training, projected onto the plane, with the loss of {len(path)} snapshots."
        )
    else:
        words += (
            "Both directions are random (seed 0): every row of a matrix has the norm of the same "
            "row of the weights, and biases and norms stay as they are. The trained model is in "
            "the middle."
        )
    st.caption(words)
    return script(landscape_code, chosen.run, kind == RANDOM)


def lowest_in_words(grid: Tensor, on_path: Tensor) -> str:
    """The lowest loss of the plane's points, and a lower one of the snapshots on it, if any is."""
    finite = grid[grid.isfinite()]
    if not len(finite):
        return "No loss is finite."
    count, lowest = grid.numel() - len(finite), float(finite.min())
    words = f"The lowest is {three(lowest)} nats per label"
    if count:
        words = f"{count} of the losses are not finite; the lowest other is {three(lowest)} nats"
    of_snapshots = on_path[on_path.isfinite()]
    if len(of_snapshots) and float(of_snapshots.min()) < lowest:
        words += f", and between the points a snapshot has {three(float(of_snapshots.min()))}"
    return f"{words}."


def _measure(chosen: InsideRun, kind: str) -> tuple[Plane, list[Tensor], Tensor] | None:
    """The plane, the loss row by row, and that at every snapshot's place; None until measured.

    Snapshots are opened only if something is left to measure.
    """
    whose = kind, tuple(map(chosen.identity, chosen.steps))
    on_path = len(chosen.steps) if kind == TRAINING else 0

    def plane_of() -> Plane:
        return cached(chosen.first, ("landscape plane", *whose), lambda: _plane(chosen, kind))

    def piece(at: int, _: Report) -> Tensor:
        plane, batch = plane_of(), chosen.held_out
        model = chosen.opened(chosen.steps[-1]).model
        if at < SIDE:
            across, down = _places(plane, kind)
            return next(losses(model, batch, plane, across, down[at : at + 1]))
        places = plane.path.tolist() if on_path else []
        heights = [next(losses(model, batch, plane, [x], [y])) for x, y in places]
        return torch.cat(heights) if heights else torch.empty(0)

    pieces = measurements(
        chosen.first,
        "landscape",
        [("landscape", *whose, at) for at in range(SIDE + 1)],
        piece,
        cost=(SIDE * SIDE + on_path) * chosen.cost_of_held_out,
        doing="The loss, row by row",
        too_long=TOO_LARGE_TO_MEASURE,
    )
    return None if pieces is None else (plane_of(), pieces[:SIDE], pieces[SIDE])


def _plane(chosen: InsideRun, kind: str) -> Plane:
    snapshots = [weights_of(chosen.opened(step).model) for step in chosen.steps]
    with reserve(BYTES_A_VALUE * len(snapshots) * chosen.parameters):
        return training_plane(snapshots) if kind == TRAINING else random_plane(snapshots, seed=0)


def _places(plane: Plane, kind: str) -> list[list[float]]:
    """Coordinates along both directions: the training's span, or −1 to 1, and a quarter more."""
    places = []
    for low, high in zip(plane.path.amin(0).tolist(), plane.path.amax(0).tolist(), strict=True):
        if low == high == 0.0 or kind == RANDOM:
            low, high = -1.0, 1.0
        room = 0.25 * (high - low) or 1.0
        places.append(torch.linspace(low - room, high + room, SIDE).tolist())
    return places


def landscape_code(run: Run, is_random: bool) -> None:
    models = [open_folder(folder).model for _, folder in run.snapshots()]
    weights = [weights_of(model) for model in models]
    plane = random_plane(weights, seed=0) if is_random else training_plane(weights)
    held_out = run.task().held_out_batch
    batch = held_out.rows(slice(64))
    places = [-1.0, -0.5, 0.0, 0.5, 1.0]
    for row in losses(models[-1], batch, plane, places, places):
        print(row)
    print(plane.path, plane.explained)
