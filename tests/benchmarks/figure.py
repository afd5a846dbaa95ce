"""How a benchmark says what it measured, and the numbers it needs for that."""

from __future__ import annotations

from collections.abc import Sequence


def report(name: str, measured: str, against: str, bar: str) -> None:
    """One line that the run's summary shows again."""
    print(f"\n{name}: measured {measured} against {against}, bar {bar}")


def quantile(values: Sequence[float], share: float) -> float:
    """The value that this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"
