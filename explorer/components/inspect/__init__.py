"""Every token in two halves: how much the chosen token attends to it, and it to the chosen one.

Pointing previews, a click pins, the arrow keys move, and Esc unpins, all without the server. The
message holds every weight of the head, so it grows with rows × columns.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from explorer.charts.figure_data import Figure
from explorer.components import events, wire
from explorer.components.events import Place
from explorer.components.mounting import NO_CHOICE, View, no_figures
from explorer.text.token_labels import Label

STRONGEST_NAMED = 5
"""Tokens named in each direction; the others are only shaded."""

INSPECT_HTML = """
<div class="view inspect">
  <div class="head"><div class="sentence idle"></div></div>
  <div class="keys">
    <div class="half above"><span class="swatch"></span><span class="said"></span></div>
    <div class="half below"><span class="swatch"></span><span class="said"></span></div>
  </div>
  <div class="stage"></div>
  <div class="foot"><span class="notes"></span><span class="hint"></span></div>
  <div class="spoken" role="status" aria-live="polite"></div>
</div>
"""

INSPECT_WORDS = {
    "above": "upper half: what the chosen token reads",
    "below": "lower half: what reads the chosen token",
    "strip": "Tokens. Arrow keys move from one to the next, Escape unpins.",
}

_VIEW = View("inspect", INSPECT_HTML)


def inspect(
    weights: Tensor,
    rows: Sequence[Label],
    columns: Sequence[Label],
    *,
    key: str,
    title: str,
    allowed: Tensor | None = None,
    same: bool = True,
    row_name: str = "query",
    column_name: str = "key",
    unit: str = "weight",
    pinned: Place | None = None,
    on_pin: Callable[[Place | None], None] | None = None,
    figures: Callable[[], Sequence[Figure]] = no_figures,
) -> None:
    """Draw the tokens of one head, whose `weights` are (queries, keys) and not negative.

    `same` says that rows and columns are the same tokens: then there is one strip, and
    every token has both halves. Otherwise (cross-attention) the rows are one strip and the
    columns another, and each shows the half that there is. `allowed` is true where a
    query may attend; the half of a pair that may not is hatched, and so is a value that is
    no number. `unit` is what the values are called, `title` whose they are.

    With `on_pin`, `pinned` is the token that is pinned at first, as its side (0 is a row, 1 a
    column) and its place; pinning another or unpinning is one rerun, once the hand rests.
    """
    hint = "Point at another token to see what it attends to; click to pin it."
    words = {"row": row_name, "column": column_name, "unit": unit, "title": title, "hint": hint}
    name = key if on_pin else None
    message = encode(
        weights, rows, columns, allowed=allowed, same=same, words=words | INSPECT_WORDS, name=name
    )
    _VIEW(
        figures=figures,
        title=title,
        key=key,
        data=message,
        choice=list(pinned or ()) if on_pin else NO_CHOICE,
        on_chosen_change=events.on_pin(
            key, len(rows), len(columns), on_pin, parse=events.on_a_side
        ),
    )


def encode(
    weights: Tensor,
    rows: Sequence[Label],
    columns: Sequence[Label],
    *,
    allowed: Tensor | None,
    same: bool,
    words: dict[str, str],
    name: str | None = None,
) -> bytes:
    """One head as one message; pure, so that it can be measured and tested."""
    wire.check_shape(weights, rows, columns)
    if same and len(rows) != len(columns):
        raise ValueError(f"{len(rows)} rows and {len(columns)} columns are not the same tokens")
    codes, planes = wire.encode_picture(weights)
    masked, visible = False, np.ones(weights.shape, dtype=bool)
    if allowed is not None:
        may = np.broadcast_to(allowed.detach().to("cpu").numpy(), weights.shape)
        planes["allowed"] = wire.bits(may)
        masked, visible = not bool(may.all()), may
    header: dict[str, Any] = {
        **codes,
        "same": same,
        "masked": masked,
        "unknown": bool(np.isnan(wire.as_array(weights)[visible]).any()),
        "strongest": STRONGEST_NAMED,
        "words": words,
        **wire.labelled(rows, columns),
        **({"name": name, "tells": True} if name else {}),
    }
    return wire.pack(header, planes)
