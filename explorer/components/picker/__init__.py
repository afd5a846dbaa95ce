"""Cells to pick from: a table of numbers, every head of a model, or heads in an order.

Where `matrix` is for reading (a click pins a cell), this is for choosing: a click, or the arrow
keys and Enter, picks a cell, and pointing at one says it in words.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from explorer.analysis.thumbnails import Thumbnails, thumbnails_of_weights
from explorer.charts.figure_data import WINDOW, Figure, FigureData, TableData
from explorer.components import events, wire
from explorer.components.mounting import View, neighbour

PICKER_HTML = """
<div class="view picker">
  <div class="head"><div class="sentence idle"></div></div>
  <div class="stage"><canvas tabindex="0" role="application"></canvas></div>
  <div class="foot"><div class="legend"></div><span class="notes"></span></div>
  <div class="spoken" role="status" aria-live="polite"></div>
</div>
"""
HEADS_NOTE = "each head has its own colour scale"

_VIEW = View("picker", PICKER_HTML)

Pick = Callable[[int, int], None]


def cells(
    values: Tensor,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    key: str,
    title: str,
    selected: events.Place | None,
    on_pick: Pick,
    row_name: str = "layer",
    column_name: str = "head",
    sentence: str = "Layer {row}, head {column}: {value}",
    unit: str = "",
    absent: str = "no value",
    top: float | None = None,
    scale: str = "sequential",
    height: int | str = WINDOW,
    short_names: tuple[Sequence[str], Sequence[str]] | None = None,
    error: float = 0.0,
) -> None:
    """Draw `values` (rows, columns); `on_pick(row, column)` is called before the next run.

    `scale` is "sequential" or "diverging" around zero, and `top` ends its colours, else the largest
    value does. NaN is hatched and called `absent`. `sentence` says a cell, with {row}, {column} and
    {value}; `title` names the picture. `short_names` are drawn beside the rows and over the columns
    in place of long names, which the sentence has. A value that may be off by `error` is written
    with fewer digits.
    """

    def figures() -> list[Figure]:
        names = tuple(rows), tuple(columns)
        return [
            FigureData(values, *names, title, unit, row_name, column_name, scale=scale, top=top)
        ]

    words = {"title": title, "row": row_name, "column": column_name, "sentence": sentence}
    words |= {"unit": unit, "absent": absent}
    data = encode_cells(
        values,
        rows,
        columns,
        words,
        scale=scale,
        top=top,
        name=key,
        short_names=short_names,
        error=error,
    )
    _draw(key, title, data, height, selected, on_pick, tuple(values.shape), figures)


def encode_cells(
    values: Tensor,
    rows: Sequence[str],
    columns: Sequence[str],
    words: dict[str, str],
    *,
    scale: str,
    top: float | None,
    name: str,
    short_names: tuple[Sequence[str], Sequence[str]] | None = None,
    error: float = 0.0,
) -> bytes:
    wire.check_shape(values, rows, columns)
    codes, planes = wire.encode_picture(values)
    idle = "Point at a cell to read it; click to choose it."
    header = {
        **codes,
        **_header("cells", name, values.shape, {"picks": "chooses", "idle": idle, **words}),
        "again": True,
        "scale": scale,
        "top": wire.largest_of(values) or 1.0 if top is None else float(top),
        "rows": list(rows),
        "columns": list(columns),
        "written": [list(labels) for labels in short_names or (rows, columns)],
        **({"error": error} if error else {}),
    }
    return wire.pack(header, planes)


@dataclass(frozen=True)
class EveryHead:
    """Whose heads are sent in full: the name of their pass, and the title of one.

    The title has the layer and the head behind its two parts. A matrix of the same `of` follows.
    """

    of: str
    title: tuple[str, str]


def grid(
    weights: Tensor | Thumbnails,
    *,
    selected: events.Place | None,
    key: str,
    title: str,
    on_pick: Pick | None = None,
    every: EveryHead | None = None,
) -> None:
    """Draw `weights` (layers, heads, queries, keys) small and frame the `selected` head, if one is.

    Layers down, heads across; many layers stand in several columns beside each other, in so many
    that the pictures are largest. Sent are 8 bits a cell and at most 32 cells a side: the pictures
    are for finding a head. `title` says whose heads they are.

    With `every`, the weights of a small pass are sent in full. Then a matrix on the page that shows
    a head of the same pass is handed any other by the browser, as soon as it is clicked or walked
    to with the arrow keys; the server hears of it in one message, once the keys rest.

    One click is one rerun: `on_pick(layer, head)` is called before the script.
    """
    small = weights if isinstance(weights, Thumbnails) else thumbnails_of_weights(weights)
    layers, heads, queries, keys = small.shape

    def figures() -> list[Figure]:
        side = f", each cell the largest of {small.pooled} × {small.pooled}"
        return [
            FigureData(
                small.cells.permute(0, 2, 1, 3).reshape(layers * queries, heads * keys),
                tuple(f"layer {y}, query {q}" for y in range(layers) for q in range(queries)),
                tuple(f"head {x}, key {k}" for x in range(heads) for k in range(keys)),
                f"{title}{side if small.pooled > 1 else ''}",
                row_name="layer and query",
                column_name="head and key",
            )
        ]

    data = encode_grid(small, name=key, title=title, every=every)
    _draw(key, title, data, WINDOW, selected, on_pick, (layers, heads), figures)


def select(key: str, selected: events.Place | None, *, by: str) -> None:
    """Have one that is drawn already frame this head; another part of the page says so."""
    if selected is not None:
        neighbour(key, [*selected], by)


@lru_cache(maxsize=16)
def encode_grid(
    thumbnails: Thumbnails, *, name: str, title: str = "", every: EveryHead | None = None
) -> bytes:
    """All pictures as one message: a byte a cell, each picture scaled to its own largest."""
    small = thumbnails.cells
    layers, heads, queries, keys = small.shape
    tops, planes = wire.shades(small.reshape(-1, queries, keys))
    words = {"row": "layer", "column": "head", "title": title, "note": HEADS_NOTE}
    words |= {"idle": "Point at a head to enlarge it.", "picks": "opens"}
    words |= {"chosen": ", chosen", "other": "; click to open it"}
    header = {
        **_header("grid", name, (layers, heads), words),
        "shown": True,
        "shape": [queries, keys],
        "pooled": thumbnails.pooled,
        "tops": [tops[layer * heads : (layer + 1) * heads] for layer in range(layers)],
    }
    exact, allowed = thumbnails.exact, thumbnails.allowed
    if every and exact is not None and allowed is not None:
        planes |= wire.every_head(exact, allowed)
        size, steps = list(exact.shape[2:]), wire.UNIT_STEPS
        header["every"] = {"of": every.of, "title": every.title, "size": size, "steps": steps}
    return wire.pack(header, planes)


@dataclass(frozen=True, eq=False)
class RankedHead:
    """One head: its place as it is said, its number as it is said, and its small picture (q, k)."""

    layer: int
    head: int
    place: str
    value: str
    picture: Tensor


def ranked(
    heads: Sequence[RankedHead],
    *,
    key: str,
    title: str,
    selected: events.Place,
    on_pick: Pick,
    pooled: int = 1,
    across: int = 6,
) -> None:
    """Draw the heads in their order; `on_pick(layer, head)` is called before the next run.

    A click, or Tab and Enter, picks a head. `title` says whose heads they are, `pooled` how many
    cells a side one cell of the pictures is the largest of, `across` how many stand in a row.
    """

    def pick(layer: int, head: int) -> None:
        if any((layer, head) == (other.layer, other.head) for other in heads):
            on_pick(layer, head)

    def figures() -> list[Figure]:
        names = ("layer", "head", "place", "value")
        return [TableData({name: [getattr(head, name) for head in heads] for name in names}, title)]

    data = encode_ranked(heads, pooled, name=key, across=across)
    size = tuple(1 + max((getattr(e, of) for e in heads), default=0) for of in ("layer", "head"))
    _draw(key, title, data, WINDOW, selected, pick, size, figures, half=True)


def encode_ranked(heads: Sequence[RankedHead], pooled: int, *, name: str, across: int = 6) -> bytes:
    """All pictures as one message: a byte a cell, each picture scaled to its own largest."""
    pictures = [head.picture for head in heads]
    tops, planes = wire.shades(torch.stack(pictures) if pictures else torch.empty(0, 0, 0))
    idle = "Point at a head to read its value; click to choose it."
    header = {
        **_header("ranked", name, (), {"idle": idle, "note": HEADS_NOTE}),
        "shape": list(heads[0].picture.shape if heads else (0, 0)),
        "pooled": pooled,
        "across": across,
        "items": [
            {"at": [head.layer, head.head], "place": head.place, "value": head.value, "top": top}
            for head, top in zip(heads, tops, strict=True)
        ],
    }
    return wire.pack(header, planes)


def _header(kind: str, name: str, size: Sequence[int], words: dict[str, str]) -> dict[str, Any]:
    words = {"chosen": "", "other": "", **words}
    return {"kind": kind, "name": name, "tells": True, "size": list(size), "words": words}


def _draw(
    key: str,
    title: str,
    data: bytes,
    height: int | str,
    selected: events.Place | None,
    on_pick: Pick | None,
    size: tuple[int, ...],
    figures: Callable[[], list[Figure]],
    half: bool = False,
) -> None:
    def hand_over() -> None:
        picked = events.cell(events.chosen(key), *size)
        if picked and on_pick:
            on_pick(*picked)

    _VIEW(
        key=key,
        data=data,
        height=height,
        choice=list(selected) if selected else None,
        figures=figures,
        title=title,
        half=half,
        on_chosen_change=hand_over,
    )
