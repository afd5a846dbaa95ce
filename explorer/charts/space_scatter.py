"""Tokens in three dimensions, which move from layer to layer in the browser."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go
import torch
from torch import Tensor

from explorer.charts.plotly_frame import figure_of, plain_label, scene
from explorer.charts.theme import Palette

DIAGONAL = 1.75
"""The diagonal of the axes' box in plotly's unit; a unit of data is equally long on every axis."""
CAMERA = {"eye": {"x": 1.3, "y": -1.3, "z": 0.75}, "center": {"z": -0.1}}
WHOLE_WAY, SLOWEST, QUICKEST, FRAME_TIME = 4_000, 600, 120, 40
"""Milliseconds: of all steps together, of one step (most, least), and of one frame."""
DECIMALS, LONGEST_TOKEN_NOTE = 4, 90
TICKS = 4
ROOM_OF_BUTTONS = 126
"""Pixels to the left of the slider."""
BELOW = 0.06
"""The share of the height under the axes that names the step."""
ROOM_AROUND = 0.06
"""Empty room at each end of an axis, as a share of its length."""
VOCABULARY_TRACE, WAYS_TRACE, NEAR_TRACE, TOKENS_TRACE = (
    "vocabulary",
    "way through the layers",
    "nearest",
    "your tokens",
)

Labelled = tuple[Sequence[str], Sequence[str], Tensor]
"""Labels, tooltips and places (n, 3)."""


@dataclass(frozen=True, eq=False)
class MovingTokens:
    """The name and note of each step, the label of each token, and their places.

    `places` (steps, tokens, 3); `tooltips[step]` has a text for each token. `near[step]` has the
    labels, tooltips and places (n, 3) of the nearest tokens. `around` (m, 3) has the places of
    the vocabulary, and `names` its labels.
    """

    steps: Sequence[str]
    notes: Sequence[str]
    labels: Sequence[str]
    places: Tensor
    tooltips: Sequence[Sequence[str]]
    near: Sequence[Labelled]
    names: Sequence[str]
    around: Tensor


def moving_scatter(
    moving: MovingTokens, titles: Sequence[str], palette: Palette, start: int = 0
) -> go.Figure:
    """The tokens at step `start`, with their paths; a slider and a button move them.

    The axes, with these `titles`, include every step. Between two steps a token moves straight.
    """
    hues = [palette.series[at % len(palette.series)] for at in range(len(moving.labels))]
    traces = [
        _vocabulary(moving, palette),
        _ways(moving.places, hues),
        _near(moving.near[start], palette),
        _tokens(moving, start, hues, palette),
    ]
    axes = scene(palette, **dict(zip("xyz", titles, strict=True))) | {"camera": CAMERA}
    near = [places for _, _, places in moving.near]
    ranges = axis_ranges(moving.around, moving.places.flatten(0, 1), *near)
    unit = DIAGONAL / math.hypot(*(high - low for low, high in ranges))
    sides = {n: unit * (high - low) for n, (low, high) in zip("xyz", ranges, strict=True)}
    for name, (low, high) in zip("xyz", ranges, strict=True):
        axes[f"{name}axis"] |= {"range": [low, high], "nticks": TICKS}
    figure = figure_of(
        *traces,
        scene=axes | {"aspectmode": "manual", "aspectratio": sides, "domain": {"y": [BELOW, 1]}},
        legend={"orientation": "h", "y": 1.04, "itemsizing": "constant"},
        modebar={"orientation": "v"},
        annotations=[_note(moving.notes[start], palette)],
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
    )
    if len(moving.steps) > 1:
        figure.frames = _frames(moving, palette)
        figure.update_layout(sliders=[_slider(moving.steps, start, palette)])
        figure.update_layout(updatemenus=[_buttons(palette)])
    return figure


def _vocabulary(moving: MovingTokens, palette: Palette) -> go.Scatter3d:
    return go.Scatter3d(
        **_coordinates(moving.around),
        name=VOCABULARY_TRACE,
        customdata=[plain_label(name) for name in moving.names],
        mode="markers",
        marker={"size": 2, "color": palette.muted, "opacity": 0.35},
        hovertemplate=f"%{{customdata}}<br>{VOCABULARY_TRACE}<extra></extra>",
    )


def _ways(places: Tensor, hues: Sequence[str]) -> go.Scatter3d:
    """One line for each token, all in one trace, with a gap after each line."""
    gap = torch.full((1, *places.shape[1:]), torch.nan, dtype=places.dtype)
    return go.Scatter3d(
        **_coordinates(torch.cat([places, gap]).transpose(0, 1).flatten(0, 1)),
        name=WAYS_TRACE,
        mode="lines",
        line={"width": 2, "color": [hue for hue in hues for _ in range(len(places) + 1)]},
        opacity=0.5,
        showlegend=False,
        hoverinfo="skip",
    )


def _near(near: Labelled, palette: Palette) -> go.Scatter3d:
    return go.Scatter3d(
        **_labelled(*near),
        name=NEAR_TRACE,
        mode="markers+text",
        marker={"size": 4, "color": palette.muted, "symbol": "circle-open"},
        textfont={"size": 12, "color": palette.muted, "family": "monospace"},
        textposition="bottom center",
        hovertemplate="%{customdata}<extra></extra>",
    )


def _tokens(moving: MovingTokens, step: int, hues: Sequence[str], palette: Palette) -> go.Scatter3d:
    return go.Scatter3d(
        **_labelled(moving.labels, moving.tooltips[step], moving.places[step]),
        name=TOKENS_TRACE,
        mode="markers+text",
        marker={"size": 6, "color": list(hues), "symbol": "diamond"},
        textfont={"size": 13, "color": palette.text, "family": "monospace"},
        textposition="top center",
        hovertemplate="%{customdata}<extra></extra>",
    )


def _labelled(labels: Sequence[str], notes: Sequence[str], places: Tensor) -> dict[str, Any]:
    """The places with their labels, drawn on a canvas and never as markup, and their tooltips."""
    tooltips = [plain_label(note, LONGEST_TOKEN_NOTE) for note in notes]
    return {"text": list(labels), "customdata": tooltips, **_coordinates(places)}


def _frames(moving: MovingTokens, palette: Palette) -> list[dict[str, Any]]:
    """A frame for every step, named by its number, and the frames on the way to it."""
    frames: list[dict[str, Any]] = []
    milliseconds = min(SLOWEST, max(QUICKEST, WHOLE_WAY / max(1, len(moving.steps) - 1)))
    between = round(milliseconds / FRAME_TIME)
    for step, places in enumerate(moving.places):
        if step:
            before = moving.places[step - 1]
            for part in range(1, between):
                moved = before + (places - before) * part / between
                at = {"type": "scatter3d", **_coordinates(moved)}
                frames.append({"name": f"{step - 1}+{part}", "data": [at], "traces": [3]})
        drawn = moving.near[step], (moving.labels, moving.tooltips[step], places)
        frame: dict[str, Any] = {"name": str(step), "traces": [2, 3]}
        frame["data"] = [{"type": "scatter3d", **_labelled(*some)} for some in drawn]
        frame["layout"] = {"annotations": [_note(moving.notes[step], palette)]}
        frames.append(frame)
    return frames


def _slider(names: Sequence[str], start: int, palette: Palette) -> dict[str, Any]:
    at_once = {"mode": "immediate", "frame": {"duration": 0, "redraw": True}}
    steps = [
        {"label": name, "method": "animate", "args": [[str(step)], at_once]}
        for step, name in enumerate(names)
    ]
    return {
        "active": start,
        "steps": steps,
        "x": 0,
        "len": 1,
        "y": 0,
        "pad": {"t": 4, "b": 4, "l": ROOM_OF_BUTTONS, "r": 20},
        "currentvalue": {"visible": False},
        "font": {"size": 12, "color": palette.muted},
        "bgcolor": palette.muted,
        "activebgcolor": palette.text,
        "bordercolor": palette.border,
        "tickcolor": palette.border,
        "transition": {"duration": 0},
    }


def _buttons(palette: Palette) -> dict[str, Any]:
    go_on = {"mode": "immediate", "fromcurrent": True}
    go_on |= {"frame": {"duration": FRAME_TIME, "redraw": True}, "transition": {"duration": 0}}
    stop = {"mode": "immediate", "frame": {"duration": 0, "redraw": False}}
    return {
        "type": "buttons",
        "direction": "right",
        "showactive": False,
        "x": 0.0,
        "y": 0,
        "xanchor": "left",
        "yanchor": "top",
        "pad": {"t": 2},
        "bgcolor": palette.surface,
        "bordercolor": palette.border,
        "font": {"size": 12, "color": palette.text},
        "buttons": [
            {"label": "Play", "method": "animate", "args": [None, go_on]},
            {"label": "Pause", "method": "animate", "args": [[None], stop]},
        ],
    }


def _note(text: str, palette: Palette) -> dict[str, Any]:
    return {
        "text": text,
        "showarrow": False,
        "font": {"size": 12, "color": palette.muted},
        "xref": "paper",
        "yref": "paper",
        "x": 0,
        "y": 0,
        "xanchor": "left",
        "yanchor": "bottom",
    }


def axis_ranges(*every: Tensor) -> list[tuple[float, float]]:
    """The ends of each of the three axes that include all places (n, 3), with some room."""
    places = torch.cat(every)
    places = places[places.isfinite().all(-1)]
    if not len(places):
        return [(-1.0, 1.0)] * 3
    low, high = places.min(0).values, places.max(0).values
    room = ROOM_AROUND * (high - low).clamp(min=1e-6)
    return list(zip((low - room).tolist(), (high + room).tolist(), strict=True))


def _coordinates(places: Tensor) -> dict[str, list[float | None]]:
    """Places (n, 3) as plotly reads them; NaN is left out."""
    rows = places.double().mul(10**DECIMALS).round().div(10**DECIMALS).T.tolist()
    return {
        name: [None if value != value else value for value in row]
        for name, row in zip("xyz", rows, strict=True)
    }
