"""A chart in words, for readers who do not see it: its title and its most important numbers.

The text comes from the table that is exported with the chart. The words of a canvas view come from
`putInWords` in `components/shared.js`, since such a view changes without the server.
"""

import math
from collections.abc import Mapping, Sequence
from heapq import nlargest
from typing import Any

from explorer.charts.figure_data import Value
from explorer.text.number_format import three
from explorer.text.visible_text import cut

MOST_CLAUSES = 3
"""The most values, or lines of a chart of curves, in the sentence."""
LONGEST_NAMED = 40
"""Letters of a label at most."""
Table = Mapping[str, Sequence[Value]]


def figure_text(title: str, table: Table, spec: Mapping[str, Any] | None = None) -> str:
    """One sentence about the figure: where its lines begin and end, or its largest values.

    `spec` is the Vega-Lite chart of the table, which names its axes; O(rows).
    """
    x, y, series = _axes(table, spec or {})
    is_scatter = spec is not None and spec["layer"][0].get("mark", {}).get("type") == "circle"
    if y is None or is_scatter:
        return f"{title}."
    if x is not None and _is_number(table, x) and series != x:
        clauses = [_line(name, x, y, rows) for name, rows in _series(table, x, y, series)]
        more = f"; and {len(clauses) - MOST_CLAUSES} more" if len(clauses) > MOST_CLAUSES else ""
        return f"{title}. {'; '.join(clauses[:MOST_CLAUSES])}{more}." if clauses else f"{title}."
    rows = [at for at, value in enumerate(table[y]) if _finite(value)]
    largest = nlargest(MOST_CLAUSES, rows, key=lambda at: abs(_number(table[y][at])))
    names = [name for name in (x, series) if name is not None and name != y]
    clauses = [f"{_row_name(table, names, at)}: {three(_number(table[y][at]))}" for at in largest]
    return f"{title}. The largest {y}: {'; '.join(clauses)}." if clauses else f"{title}."


def _axes(table: Table, spec: Mapping[str, Any]) -> tuple[str | None, str | None, str | None]:
    """The columns on the x axis, on the y axis, and of the series."""
    for layer in spec.get("layer", ()):
        fields = {
            channel: how["field"]
            for channel, how in layer["encoding"].items()
            if isinstance(how, Mapping) and how.get("field") in table
        }
        x, y = fields.get("x"), fields.get("y")
        if x and y:
            if _is_number(table, x) and not _is_number(table, y):
                x, y = y, x  # horizontal bars
            if _is_number(table, y):
                return x, y, fields.get("color") or fields.get("detail")
    numbers = [name for name in table if _is_number(table, name)]
    texts = [name for name in table if name not in numbers]
    if not numbers:
        return None, None, None
    return (texts[0] if texts else None), numbers[-1], (texts[1] if len(texts) > 1 else None)


def _series(
    table: Table, x: str, y: str, series: str | None
) -> list[tuple[str, list[tuple[float, float]]]]:
    """The name of each line, and its points from left to right."""
    lines: dict[str, list[tuple[float, float]]] = {}
    names = table[series] if series else [y] * len(table[x])
    for name, step, value in zip(names, table[x], table[y], strict=True):
        if _finite(step) and _finite(value):
            lines.setdefault(str(name), []).append((_number(step), _number(value)))
    return [(name, sorted(points)) for name, points in lines.items()]


def _line(name: str, x: str, y: str, points: list[tuple[float, float]]) -> str:
    (first, begins), (last, ends) = points[0], points[-1]
    what = cut(name, LONGEST_NAMED) if name != y else y
    if first == last:
        return f"{what}: {three(begins)} at {x} {three(first)}"
    return f"{what}: from {three(begins)} at {x} {first:g} to {three(ends)} at {x} {last:g}"


def _row_name(table: Table, names: Sequence[str], at: int) -> str:
    words = (cut(str(table[name][at]), LONGEST_NAMED) for name in names)
    return ", ".join(filter(None, words)) or f"row {at + 1}"


def _is_number(table: Table, name: str) -> bool:
    return any(_finite(value) for value in table[name]) and not any(
        isinstance(value, str) for value in table[name]
    )


def _finite(value: Value) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _number(value: Value) -> float:
    return float(value) if isinstance(value, int | float) else math.nan
