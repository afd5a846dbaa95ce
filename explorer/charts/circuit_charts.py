"""Estimates beside exact values, what circuits restore by size, and steering over strengths."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import altair as alt

from explorer.charts.fill import Spec, filled_chart, finite, written
from explorer.charts.frame import (
    MIDDLE,
    around_zero,
    curves_in_bands,
    fixed,
    framed_spec,
    number_line,
    ruler,
    scale_ends,
    shown_place,
    text_line,
)

CIRCUIT_ALONE, ALL_BUT_CIRCUIT, RANDOM_ALONE = (
    "the circuit alone",
    "all but the circuit",
    "random edges alone",
)
LOWEST_SHARE, HIGHEST_SHARE = -0.5, 1.5
"""Shares outside this range are drawn at its ends; their numbers are in the tooltip."""


class Point(Protocol):
    """What is drawn of a circuit of one size."""

    @property
    def edges(self) -> int: ...
    @property
    def circuit(self) -> float: ...
    @property
    def complement(self) -> float: ...
    @property
    def random(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


def estimate_and_exact(
    names: Sequence[str], kinds: Sequence[str], estimates: Sequence[float], exact: Sequence[float]
) -> Spec:
    """A point for each part: its estimate across, its exact value up, on the diagonal if equal."""
    rows: list[dict[str, Any]] = [
        {"part": name, "kind": kind, "estimate": finite(about), "exact": finite(value)}
        for name, kind, about, value in zip(names, kinds, estimates, exact, strict=True)
    ]
    low, high = around_zero([*estimates, *exact])
    ends = scale_ends("x", low, high) | scale_ends("y", low, high)
    diagonal = [{"at": low}, {"at": high}]
    return filled_chart(_scatter(), {"parts": rows, "diagonal": diagonal}, **ends)


@cache
def _scatter() -> Spec:
    equal = (
        alt.Chart(alt.NamedData("diagonal"))
        .mark_line(strokeDash=[3, 3], strokeWidth=1, opacity=0.6)
        .encode(x=alt.X("at:Q", scale=fixed("x")), y=alt.Y("at:Q", scale=fixed("y")))
    )
    tooltip = [text_line("part"), number_line("estimate"), number_line("exact")]
    points = (
        alt.Chart(alt.NamedData("parts"))
        .mark_point(filled=True, size=46, opacity=0.8)
        .encode(
            x=alt.X("estimate:Q", title="estimate", scale=fixed("x")),
            y=alt.Y("exact:Q", title="exact", scale=fixed("y")),
            color=alt.Color("kind:N", legend=alt.Legend(symbolType="circle")),
            shape=alt.Shape("kind:N"),
            tooltip=tooltip,
        )
    )
    return framed_spec(alt.layer(equal, points))


def circuit_curves(points: Sequence[Point], shown: int | None = None) -> Spec:
    """Three lines over the number of edges; the random one in the band of its draws.

    A rule stands at the size `shown`.
    """
    curves: list[dict[str, Any]] = [
        {"edges": p.edges, "which": which, "share": _within(value)}
        for p in points
        for which, value in (
            (CIRCUIT_ALONE, p.circuit),
            (ALL_BUT_CIRCUIT, p.complement),
            (RANDOM_ALONE, p.random),
        )
    ]
    band: list[dict[str, Any]] = [
        {"edges": p.edges, "low": _within(p.low), "high": _within(p.high)} for p in points
    ]
    numbers: list[dict[str, Any]] = [
        {
            "edges": p.edges,
            CIRCUIT_ALONE: written(p.circuit),
            ALL_BUT_CIRCUIT: written(p.complement),
            RANDOM_ALONE: f"{written(p.random)} ({written(p.low)} to {written(p.high)})",
        }
        for p in points
    ]
    known = [row["share"] for row in curves if row["share"] is not None]
    low, high = min([0.0, *known]), max([1.0, *known])
    at: list[dict[str, Any]] = [] if shown is None else [{"edges": shown}]
    tables = {"curves": curves, "band": band, "numbers": numbers, "at": at}
    return filled_chart(_curves(), tables, **scale_ends("y", low - 0.05, high + 0.05))


def _within(value: float) -> float | None:
    return min(HIGHEST_SHARE, max(LOWEST_SHARE, value)) if math.isfinite(value) else None


@cache
def _curves() -> Spec:
    sizes = [digit * 10**power for power in range(7) for digit in (1, 2, 5)]
    axis = alt.Axis(values=sizes, format=",", labelOverlap="greedy")
    x = alt.X("edges:Q", title="edges", axis=axis, scale=alt.Scale(type="log", nice=False))
    y: dict[str, Any] = {"title": "share of the difference", "scale": fixed("y")}
    which: dict[str, Any] = {"sort": [CIRCUIT_ALONE, ALL_BUT_CIRCUIT, RANDOM_ALONE]}
    curves = curves_in_bands(x, y, "share", ("low", "high"), which, RANDOM_ALONE)
    tooltip = [
        number_line("edges", places=0),
        *map(text_line, (CIRCUIT_ALONE, ALL_BUT_CIRCUIT, RANDOM_ALONE)),
    ]
    return framed_spec(alt.layer(*curves, shown_place(x), ruler(x, "edges", tooltip, "numbers")))


CLEAN, CORRUPTED = "clean", "corrupted"
WHICH: dict[str, Any] = {
    "sort": [CLEAN, CORRUPTED],
    "legend": alt.Legend(symbolOpacity=1),  # not as faint as the band
}


@dataclass(frozen=True)
class SteeredPoint:
    """With one direction the metric of one kind of text: the mean over pairs and its spread.

    `at` is its strength, its layer or its head.
    """

    at: float
    which: str
    mean: float
    spread: float = 0.0


def steering_chart(points: Sequence[SteeredPoint], over: str, metric: str, chosen: float) -> Spec:
    """A line for each kind of text in the band of its spread; a rule at what is chosen.

    `over` says what the points differ in: strength, layer or head.
    """
    curves = [{over: p.at, "which": p.which, "value": finite(p.mean)} for p in points]
    band = [
        {
            over: p.at,
            "which": p.which,
            "least": finite(p.mean - p.spread),
            "most": finite(p.mean + p.spread),
        }
        for p in points
    ]
    numbers: dict[float, dict[str, Any]] = {}
    for p in points:
        said = written(p.mean) + (f" ± {written(p.spread)}" if p.spread else "")
        numbers.setdefault(p.at, {over: p.at})[p.which] = said
    ends = (value for p in points for value in (p.mean - p.spread, p.mean + p.spread))
    places = [p.at for p in points] or [0.0]
    tables = {
        "curves": curves,
        "band": band,
        "numbers": [*numbers.values()],
        "chosen": [{over: chosen}],
    }
    axes = scale_ends("x", min(places), max(*places, 1.0)) | scale_ends("y", *around_zero(ends))
    return filled_chart(_steering(over, metric), tables, **axes)


@cache
def _steering(over: str, metric: str) -> Spec:
    whole = alt.Undefined if over == "strength" else alt.Axis(tickMinStep=1)
    x = alt.X(f"{over}:Q", title=over, scale=fixed("x"), axis=whole)
    y: dict[str, Any] = {"title": metric, "scale": fixed("y")}
    curves = curves_in_bands(x, y, "value", ("least", "most"), WHICH)
    chosen = (
        alt.Chart(alt.NamedData("chosen")).mark_rule(strokeDash=[4, 4], color=MIDDLE).encode(x=x)
    )
    tooltip = [number_line(over), text_line(CLEAN), text_line(CORRUPTED)]
    layers = alt.layer(*curves, chosen, ruler(x, over, tooltip, "numbers"))
    return framed_spec(layers)
