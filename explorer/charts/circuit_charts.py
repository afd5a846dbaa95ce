"""Estimates beside exact values, and how much of a difference circuits of every size restore."""

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, Protocol

import altair as alt

from explorer.charts.fill import Spec, filled_chart, finite, written
from explorer.charts.frame import (
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
