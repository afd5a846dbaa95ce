"""Heads in the order of a number: a small picture each, with its place and its value.

A click, or Tab and Enter, picks a head. Six stand in a row at every width, so the
height is known before any data is in the browser. Sent are 8 bits a cell.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from explorer.charts.figure_data import Figure, TableData
from explorer.components import events, wire
from explorer.components.mounting import View

HTML = """
<div class="view ranked">
  <div class="head"><div class="sentence idle"></div></div>
  <ol class="stage"></ol>
  <div class="foot"><span class="notes"></span></div>
</div>
"""
ITEM, AROUND = 164, 56

RANKED = ("layer", "head", "place", "value")
"""What is exported of each head."""

_VIEW = View("ranked", HTML)


@dataclass(frozen=True, eq=False)
class Item:
    """One head: its place as it is said, its number as it is said, and its small picture (q, k)."""

    layer: int
    head: int
    place: str
    value: str
    picture: Tensor


def ranked(
    items: Sequence[Item],
    *,
    key: str,
    title: str,
    selected: tuple[int, int],
    on_pick: Callable[[int, int], None],
    pooled: int = 1,
    across: int = 6,
) -> None:
    """Draw the heads in their order; `on_pick(layer, head)` is called before the next run.

    `title` says whose heads they are, `pooled` how many cells a side one cell of the pictures is
    the largest of, `across` how many stand in a row.
    """

    def hand_over() -> None:
        picked = checked_ranking(events.event(key, "picked"), items)
        if picked:
            on_pick(*picked)

    def figures() -> list[Figure]:
        columns = {name: [getattr(item, name) for item in items] for name in RANKED}
        return [TableData(columns, title)]

    rows = -(-len(items) // across)
    _VIEW(
        key=key,
        data=encode(items, pooled, name=key, across=across),
        height=rows * ITEM + AROUND,
        choice=list(selected),
        figures=figures,
        title=title,
        on_picked_change=hand_over,
    )


def checked_ranking(picked: Any, items: Sequence[Item]) -> tuple[int, int] | None:
    """What the browser says was picked, where it is among the items; it may send anything."""
    if not isinstance(picked, list | tuple) or any(type(each) is not int for each in picked):
        return None
    found = tuple(picked)
    return found if any(found == (item.layer, item.head) for item in items) else None


def encode(items: Sequence[Item], pooled: int, *, name: str, across: int = 6) -> bytes:
    """All pictures as one message: a byte a cell, each picture scaled to its own largest."""
    shape = items[0].picture.shape if items else (0, 0)
    pictures = [item.picture for item in items]
    tops, planes = wire.shades(torch.stack(pictures) if pictures else torch.empty(0, 0, 0))
    header = {
        "name": name,
        "shape": list(shape),
        "pooled": pooled,
        "across": across,
        "items": [
            {
                "at": [item.layer, item.head],
                "place": item.place,
                "value": item.value,
                "top": top,
            }
            for item, top in zip(items, tops, strict=True)
        ],
    }
    return wire.pack(header, planes)
