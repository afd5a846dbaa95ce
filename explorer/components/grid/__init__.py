"""Every head of a model at once: layers down, heads across, one small picture each.

Many layers stand in several columns beside each other: in so many that the pictures are largest.

Pointing at a picture names it and shows it larger; a click, or the arrow keys and
Enter, picks it. Sent are 8 bits a cell and at most 32 cells a side: the pictures are
for finding a head, `matrix` is for reading it.

Of a small pass every weight is sent too. Then a matrix on the page that shows a head of the
same pass is handed any other by the browser, as soon as it is clicked or walked to with the
arrow keys; the server hears of it in one message, once the keys rest.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from torch import Tensor

from explorer.analysis.thumbnails import Thumbnails, thumbnails_of_weights
from explorer.charts.figure_data import Figure, FigureData
from explorer.components import events, wire
from explorer.components.mounting import View, neighbour

HTML = """
<div class="view grid">
  <div class="head"><div class="sentence idle"></div></div>
  <div class="stage"><canvas tabindex="0" role="application"></canvas></div>
  <div class="foot"><span class="notes"></span></div>
  <div class="spoken" role="status" aria-live="polite"></div>
</div>
"""

USUAL_WIDTH = 272
"""Pixels for the pictures of one layer, in two fifths of a page on a small screen."""

LOW = 330
"""Pixels that are free under the top of a page on a small screen."""

_VIEW = View("grid", HTML)


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
    on_pick: Callable[[int, int], None] | None = None,
    height: int | None = None,
    row_name: str = "layer",
    column_name: str = "head",
    every: EveryHead | None = None,
) -> None:
    """Draw `weights` (layers, heads, queries, keys) small and frame the `selected` head, if one is.

    `title` says whose heads they are. With `every`, those that are few are sent in full.

    One click is one rerun: `on_pick(layer, head)` is called before the script.
    """
    small = weights if isinstance(weights, Thumbnails) else thumbnails_of_weights(weights)
    layers, heads, queries, keys = small.shape

    def hand_over() -> None:
        picked = events.picked(key, layers, heads)
        if picked and on_pick:
            on_pick(*picked)

    def figures() -> list[Figure]:
        side = f", each cell the largest of {small.pooled} × {small.pooled}"
        return [
            FigureData(
                small.cells.permute(0, 2, 1, 3).reshape(layers * queries, heads * keys),
                tuple(f"{row_name} {y}, query {q}" for y in range(layers) for q in range(queries)),
                tuple(f"{column_name} {x}, key {k}" for x in range(heads) for k in range(keys)),
                f"{title}{side if small.pooled > 1 else ''}",
                row_name=f"{row_name} and query",
                column_name=f"{column_name} and key",
            )
        ]

    _VIEW(
        figures=figures,
        title=title,
        key=key,
        data=encode(small, row_name, column_name, name=key, title=title, every=every),
        height=height or fitting_height(layers, queries, keys, heads),
        choice=None if selected is None else [*selected, *events.answered(key)],
        on_picked_change=hand_over,
    )


def select(key: str, selected: events.Place | None, *, by: str) -> None:
    """Have one that is drawn already frame this head; another part of the page says so."""
    if selected is not None:
        neighbour(key, [*selected, *events.answered(key)], by)


def fitting_height(layers: int, queries: int, keys: int, heads: int) -> int | str:
    """Pixels where that is low; otherwise what the window has, which the browser knows."""
    natural = natural_height(layers, queries, keys, heads)
    return natural if natural <= LOW else "content"


def natural_height(layers: int, queries: int, keys: int, heads: int = 1) -> int:
    """Room for every layer at a comfortable size, and no higher than a screen.

    Many heads make each picture as narrow as its share of the usual width.
    """
    wide = min(96.0, max(12.0, USUAL_WIDTH / heads - 8))
    tall = wide * min(1.0, max(0.25, queries / max(1, keys)))
    return int(min(560, max(layers * (tall + 8), 104) + 96))


@lru_cache(maxsize=16)
def encode(
    thumbnails: Thumbnails,
    row_name: str,
    column_name: str,
    *,
    name: str,
    title: str = "",
    every: EveryHead | None = None,
) -> bytes:
    """All pictures as one message: a byte a cell, each picture scaled to its own largest."""
    small = thumbnails.cells
    layers, heads, queries, keys = small.shape
    tops, planes = wire.shades(small.reshape(-1, queries, keys))
    header = {
        "name": name,
        "title": title,
        "shape": [layers, heads, queries, keys],
        "pooled": thumbnails.pooled,
        "tops": [tops[layer * heads : (layer + 1) * heads] for layer in range(layers)],
        "words": {"row": row_name, "column": column_name},
    }
    exact, allowed = thumbnails.exact, thumbnails.allowed
    if every and exact is not None and allowed is not None:
        planes |= wire.every_head(exact, allowed)
        size, steps = list(exact.shape[2:]), wire.UNIT_STEPS
        header["every"] = {"of": every.of, "title": every.title, "size": size, "steps": steps}
    return wire.pack(header, planes)
