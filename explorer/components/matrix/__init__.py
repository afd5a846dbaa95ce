"""One labelled matrix on one canvas: queries down, keys across, every value readable.

Pointing at a cell shows its value in a sentence, a click pins it, the arrow keys move, and Esc
unpins, all without the server. One cell may be one pixel: 1,024 tokens fit.
"""

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from explorer.charts.figure_data import WINDOW, Figure, FigureData, corner_of
from explorer.components import events, wire
from explorer.components.events import Place
from explorer.components.mounting import NO_CHOICE, View
from explorer.text.token_labels import Label, texts

MATRIX_SCALES = ("sequential", "diverging", "mask")
MATRIX_SCALINGS = ("all", "row", "column")

MATRIX_HTML = """
<div class="view matrix">
  <div class="head"><div class="sentence idle"></div></div>
  <div class="stage"><canvas tabindex="0" role="application"></canvas></div>
  <div class="foot"><div class="legend"></div>
    <span class="hint"></span><span class="notes"></span><span class="place"></span></div>
  <div class="spoken" role="status" aria-live="polite"></div>
</div>
"""

_VIEW = View("matrix", MATRIX_HTML)

Head = tuple[str, int, int]
"""The name of a pass as a `grid` names it, and the layer and head that are shown of it."""


@dataclass(frozen=True)
class MatrixLabels:
    """The labels of a picture beside another one of the same size."""

    rows: Sequence[Label]
    columns: Sequence[Label]
    row_name: str = "query"
    column_name: str = "key"

    def header(self) -> dict[str, Any]:
        """The labels for the browser, which lays the pictures out together."""
        names = corner_of(self.row_name, self.column_name)
        return {"rows": texts(self.rows), "columns": texts(self.columns), "names": names}


def matrix(
    values: Tensor,
    rows: Sequence[Label],
    columns: Sequence[Label],
    *,
    key: str,
    scale: str = "sequential",
    allowed: Tensor | None = None,
    row_name: str = "query",
    column_name: str = "key",
    sentence: str | None = None,
    masked_sentence: str | None = None,
    absent: str = "masked",
    unit: str = "weight",
    height: int | str = WINDOW,
    top: float | None = None,
    title: str | None = None,
    heading: str = "",
    scaling: str = "all",
    log: bool = False,
    hidden: Sequence[int] = (),
    cut: Tensor | None = None,
    ghost: Tensor | None = None,
    exact: bool = False,
    places: Sequence[Sequence[int]] | None = None,
    neighbours: Sequence[MatrixLabels] = (),
    on_hide: Callable[[int], None] | None = None,
    pinned: Place | None = None,
    click: str = "pin it",
    on_pin: Callable[[Place | None], None] | None = None,
    head: Head | None = None,
    kept: Callable[[Callable[[], bytes]], bytes] = operator.call,
) -> None:
    """Draw `values` (queries, keys) with a label for every row and column.

    `allowed` is true where a query may attend: the other cells are hatched, and so are
    values that are minus infinity; one that is NaN is grey, "not a number". `top` fixes the
    upper end of the colours, else it is the largest value. `sentence` and `masked_sentence` say
    a cell in words, with {row}, {column} and {value}; `absent` says in the legend what hatching
    means. `title` names the picture, `heading` is a shorter one to be read on the page. `height` is
    that of the window, or pixels.

    Each row (or column) has the full colours to itself where `scaling` says so; `log` spreads them
    over three decades; the numbers stay. The labels of the `hidden` columns are struck through;
    what is true in `cut` says that it is left out, and what is true in `ghost` has a frame,
    whatever is in it. What is said of a cell is right to single precision, of more than
    `wire.FEW_CELLS` cells only where they are `exact`, else to a step of 16 bits; an `exact` number
    that is too small for the decimals of the picture has its first digit there. `places` are the
    numbers of the rows and of the columns, where a part of a larger matrix is drawn. The cells are
    as large as those of the `neighbours`, the pictures beside it, each of which names the others
    too. With `on_hide`, a click on a column's label, or H where a cell is pinned, is one rerun that
    calls it with the column. With `on_pin`, `pinned` is the cell that is pinned at first, and
    pinning another or unpinning is one rerun, once the hand rests, that calls it; `click` says what
    a click on a cell does. The `head` that it shows may be followed by another of its pass, which
    the browser has from a `grid`. `kept` makes the message, or has it.
    """
    name = title or f"{unit} of every {row_name} and {column_name}"
    usual = "{row} attends to {column}: {value}"
    usual = "{row} may attend to {column}" if scale == "mask" else usual
    make = partial(
        encode,
        values,
        rows,
        columns,
        scale=scale,
        allowed=allowed,
        words={
            "row": row_name,
            "column": column_name,
            "corner": corner_of(row_name, column_name),
            "sentence": sentence or usual,
            "masked": masked_sentence or "{column} is masked for {row}",
            "absent": absent,
            "unit": unit,
            "title": heading or name,
            "hint": f"Point at a cell to read it; click to {click}.",
        },
        top=top,
        scaling=scaling,
        cut=cut,
        ghost=ghost,
        exact=exact,
        name=key if on_pin else None,
        head=head,
        log=log,
        hidden=[*hidden],
        hides=on_hide is not None,
        **({"places": [list(numbers) for numbers in places]} if places else {}),
        **({"beside": [labels.header() for labels in neighbours]} if neighbours else {}),
    )

    def figures() -> list[Figure]:
        return [
            FigureData(
                values,
                tuple(texts(rows)),
                tuple(texts(columns)),
                name,
                unit,
                row_name,
                column_name,
                "diverging" if scale == "diverging" else "sequential",
                None if allowed is None else allowed.expand(values.shape),
                top=top,
                scaling=scaling,
                log=log,
                hidden=tuple(hidden),
            )
        ]

    _VIEW(
        half=True,
        key=key,
        data=kept(make),
        figures=figures,
        title=name,
        height=height,
        choice=list(pinned or ()) if on_pin else NO_CHOICE,
        on_hidden_change=events.on_place(key, "hidden", len(columns), on_hide),
        on_chosen_change=events.on_pin(key, len(rows), len(columns), on_pin),
    )


def encode(
    values: Tensor,
    rows: Sequence[Label],
    columns: Sequence[Label],
    *,
    scale: str,
    allowed: Tensor | None,
    words: dict[str, Any],
    top: float | None = None,
    scaling: str = "all",
    cut: Tensor | None = None,
    ghost: Tensor | None = None,
    exact: bool = False,
    name: str | None = None,
    head: Head | None = None,
    **more: Any,
) -> bytes:
    """The whole picture as one message; pure, so that it can be measured and tested.

    `more` is what the browser alone reads, by its names there.
    """
    for parameter, value, options in (
        ("scale", scale, MATRIX_SCALES),
        ("scaling", scaling, MATRIX_SCALINGS),
    ):
        if value not in options:
            raise ValueError(f"{parameter} must be one of {', '.join(options)}, not {value!r}")
    wire.check_shape(values, rows, columns)
    codes, planes = wire.encode_picture(values)
    visible = np.isfinite(wire.as_array(values))
    if allowed is not None:
        may = np.broadcast_to(allowed.detach().to("cpu", torch.bool).numpy(), visible.shape)
        planes["allowed"] = wire.bits(may)
        visible = visible & may
    if exact:
        planes["exact"] = wire.singles(wire.as_array(values))
    if cut is not None:
        planes["cut"] = wire.bits(cut)
    if ghost is not None:
        planes["ghost"] = wire.bits(ghost)
    header: dict[str, Any] = {
        **codes,
        "exact": exact,
        "scale": scale,
        "words": words,
        "top": _top(wire.as_array(values)[visible], scale, top),
        **wire.labelled(rows, columns),
        "scaling": scaling,
        "hidden": [],
        **({"name": name, "tells": True} if name else {}),
        **({"of": head[0], "at": head[1:]} if head else {}),
        **more,
    }
    return wire.pack(header, planes)


def _top(values: wire.Array, scale: str, top: float | None) -> float:
    """The end of the colours: `top`, or the largest value (in size, if diverging)."""
    if top is not None and math.isfinite(top):
        return float(top)
    if scale == "mask" or not values.size:
        return 1.0
    largest = float(np.abs(values).max() if scale == "diverging" else values.max())
    return largest if largest > 0 else 1.0
