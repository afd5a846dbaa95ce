"""What a benchmark says: one row of the table for each figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.benchmarks.ratio import Ratio


class NotMeasured(Exception):
    """What it is measured beside is not here; the message says why."""


@dataclass(frozen=True)
class Row:
    """One figure. `met` is None where there is no goal, or nothing was measured."""

    what: str
    ours: str
    reference: str = "–"
    ratio: float | None = None
    goal: str = "none: reported"
    met: bool | None = None


def compared(what: str, measured: Ratio, reference: str, goal: float, *, note: str = "") -> Row:
    """Ours ÷ the reference by the processor's time; the goal is the most it should be."""
    return Row(
        what,
        milliseconds(measured.first) + note,
        f"{milliseconds(measured.second)} {reference}",
        measured.times,
        f"≤ {goal:g} ×",
        measured.times <= goal,
    )


def quantile(values: Sequence[float], share: float) -> float:
    """The value that this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.{0 if seconds >= 0.01 else 2}f} ms"


def spread(seconds: Sequence[float]) -> str:
    p50, p95 = quantile(seconds, 0.5), quantile(seconds, 0.95)
    return f"p50 {milliseconds(p50)}, p95 {milliseconds(p95)}, {len(seconds)} times"
