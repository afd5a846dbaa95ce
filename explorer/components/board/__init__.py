"""A table that lies still: named rows and columns, in each cell a text and, if asked, a bar.

A row, or a cell, can be greyed out; pointing says what is where, and a row can be picked.
It is a table to a screen reader too, and each row that can be picked holds a button.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from explorer.charts.figure_data import Figure, TableData
from explorer.components import events, wire
from explorer.components.mounting import View
from explorer.text.number_format import three
from explorer.text.token_labels import Label, text_of, texts

BOARD_HTML = """
<div class="view board">
  <div class="head"><div class="sentence idle"></div></div>
  <div class="stage" tabindex="0"><table><thead></thead><tbody></tbody></table></div>
</div>
"""
_VIEW = View("board", BOARD_HTML)


@dataclass(frozen=True)
class Cell:
    """What one cell says; `share` is the length of its bar, −1 to 1.

    `number` is exported in place of a text that is less exact.
    `how` is "" or one of the looks of view.css: "cut", "right", "wrong", "given",
    "changed", or "muted", which also leaves a cell without its colour.
    """

    text: str
    share: float | None = None
    how: str = ""
    number: float | None = None


@dataclass(frozen=True)
class Row:
    """Cells under a name; `mark` stands behind the name, `how` is the look of all its cells.

    `is_token` says whether the name is a token, or words of the page.
    """

    name: Label
    cells: Sequence[Cell]
    mark: str = ""
    how: str = ""
    pickable: bool = False
    is_token: bool = True


@dataclass(frozen=True)
class Column:
    """What a column is called, and a line under it; `short` is its name in a narrow table."""

    name: str
    note: str = ""
    short: str = ""


def board(
    columns: Sequence[Column],
    rows: Sequence[Row],
    *,
    key: str,
    title: str,
    corner: str,
    sentence: str,
    idle: str = "",
    pick: str = "",
    narrow: bool = False,
    coloured: bool = False,
    column: int = -1,
    seen: int = -1,
    on_pick: Callable[[int], None] | None = None,
    on_pick_column: Callable[[int], None] | None = None,
    half: bool = False,
    drags: str = "",
    carried: int = 0,
    on_drop: Callable[[int, int, int], None] | None = None,
) -> None:
    """Draw it; `on_pick` is told the place of a row before the next run.

    `title` names it where it is exported. `sentence` says a cell, with {row}, {column}, {value} and
    {share}, and `idle` stands there while none is pointed at; `pick` says what a click on a row
    does, with {row}. Words of others only ever become text. `narrow` columns are as wide as a token
    and scroll sideways where there are many. A `coloured` cell has its share as its colour and as a
    number behind its text, in place of a bar; the `column` that is chosen has a frame, and a click
    in another one is told to `on_pick_column`. Where not all fit, it, or `seen`, is in sight first.

    A cell of a board that `drags` "from" is dragged, or clicked and then dropped by a second click,
    onto a board of the same rows that `drags` "onto": it stays in its row. `on_drop` of the latter
    is told that row, the column of the former, which has `carried` columns, and its own column.
    """

    def dropped() -> None:
        value = events.event(key, "dropped")
        if not isinstance(value, list | tuple) or len(value) != 3:
            return
        sizes = len(rows), carried, len(columns)
        row, source, target = map(events.place, value, sizes)
        if on_drop and row is not None and source is not None and target is not None:
            on_drop(row, source, target)

    def hand_over(place: int) -> None:
        if rows[place].pickable and on_pick:
            on_pick(place)

    def written(cell: Cell) -> str:
        share = f" {three(cell.share)}" if coloured and cell.share is not None else ""
        return f"{cell.text}{share}" if cell.number is None else three(cell.number)

    def figures() -> list[Figure]:
        names = zip(rows, texts([row.name for row in rows]), strict=True)
        table = {corner: [text if row.is_token else str(row.name) for row, text in names]}
        if any(row.mark for row in rows):
            table["mark"] = [row.mark for row in rows]
        for place, named in enumerate(columns):
            table[named.name] = [written(row.cells[place]) for row in rows]
        return [TableData(table, title)]

    header: dict[str, Any] = {
        "name": key,
        "narrow": narrow,
        "corner": corner,
        "idle": idle,
        "sentence": sentence,
        "pick": pick,
        "columns": [[named.name, named.note, named.short] for named in columns],
        "column": column,
        "seen": column if seen < 0 else seen,
        "coloured": coloured,
        "drags": drags,
        "rows": [
            {
                "name": text_of(row.name) if row.is_token else str(row.name),
                "token": row.is_token,
                **wire.fields(row, "mark how pickable"),
                "cells": [[cell.text, wire.finite(cell.share), cell.how] for cell in row.cells],
            }
            for row in rows
        ],
    }
    _VIEW(
        figures=figures,
        title=title,
        half=half,
        key=key,
        data=wire.pack(header),
        on_picked_change=events.on_place(key, "picked", len(rows), hand_over),
        on_column_change=events.on_place(key, "column", len(columns), on_pick_column),
        on_dropped_change=dropped,
    )
