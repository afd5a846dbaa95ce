"""A table of numbers to pick from: one coloured cell each, the chosen one framed.

Where `matrix` is for reading (a click holds a cell), this is for choosing: a click, or
the arrow keys and Enter, picks a cell. Pointing at one says it in words.
"""

from collections.abc import Callable, Sequence

import numpy as np
from torch import Tensor

from explorer.charts.figure_data import Figure, FigureData
from explorer.components import events, wire
from explorer.components.mounting import View

HTML = """
<div class="view cells">
  <div class="head"><div class="sentence idle"></div></div>
  <div class="stage"><canvas tabindex="0" role="application"></canvas></div>
  <div class="foot"><div class="legend"></div></div>
  <div class="spoken" role="status" aria-live="polite"></div>
</div>
"""
LARGEST_CELL, AROUND, HIGHEST = 40, 92, 560

_VIEW = View("cells", HTML)


def cells(
    values: Tensor,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    key: str,
    title: str,
    selected: tuple[int, int] | None,
    on_pick: Callable[[int, int], None],
    row_name: str = "layer",
    column_name: str = "head",
    sentence: str = "Layer {row}, head {column}: {value}",
    unit: str = "",
    absent: str = "no value",
    top: float | None = None,
    scale: str = "sequential",
    height: int | None = None,
    written: tuple[Sequence[str], Sequence[str]] | None = None,
    error: float = 0.0,
) -> None:
    """Draw `values` (rows, columns); `on_pick(row, column)` is called before the next run.

    `scale` is "sequential" or "diverging" around zero, and `top` ends its colours, else
    the largest value does. NaN is hatched and called `absent`. `sentence` says a cell,
    with {row}, {column} and {value}; `title` names the picture. Where names are long, `written`
    has what stands beside the rows and over the columns instead; who points at a cell reads the
    names. A value that may be off by `error` is written with fewer digits.
    """

    def hand_over() -> None:
        picked = events.picked(key, *values.shape)
        if picked:
            on_pick(*picked)

    def figures() -> list[Figure]:
        names = tuple(rows), tuple(columns)
        return [
            FigureData(values, *names, title, unit, row_name, column_name, scale=scale, top=top)
        ]

    words = {"title": title, "row": row_name, "column": column_name, "sentence": sentence}
    words = {**words, "unit": unit, "absent": absent}
    _VIEW(
        key=key,
        data=encode(
            values,
            rows,
            columns,
            words,
            scale=scale,
            top=top,
            name=key,
            written=written,
            error=error,
        ),
        height=height or natural_height(len(rows)),
        choice=[*selected, *events.answered(key)] if selected else None,
        figures=figures,
        title=title,
        on_picked_change=hand_over,
    )


def natural_height(rows: int) -> int:
    """Room for every row at a comfortable size, and no higher than a screen."""
    return min(HIGHEST, rows * LARGEST_CELL + AROUND)


def encode(
    values: Tensor,
    rows: Sequence[str],
    columns: Sequence[str],
    words: dict[str, str],
    *,
    scale: str,
    top: float | None,
    name: str,
    written: tuple[Sequence[str], Sequence[str]] | None = None,
    error: float = 0.0,
) -> bytes:
    """The whole table as one message."""
    if tuple(values.shape) != (len(rows), len(columns)):
        raise ValueError(
            f"values have the shape {tuple(values.shape)}, but there are {len(rows)} rows "
            f"and {len(columns)} columns"
        )
    coded = wire.encode(values)
    array = wire.as_array(values)
    finite = np.abs(array[np.isfinite(array)])
    largest = float(finite.max()) if finite.size else 0.0
    header = {
        **coded.header(),
        "name": name,
        "scale": scale,
        "top": largest or 1.0 if top is None else float(top),
        "words": words,
        "rows": list(rows),
        "columns": list(columns),
        "written": [list(labels) for labels in written or (rows, columns)],
        **({"error": error} if error else {}),
    }
    planes = {"values": wire.plane(coded.codes), **wire.few(array)}
    return wire.pack(header, planes)
