"""Attention as lines between two columns of tokens, head by head.

Each head has a hue, and a line's opacity is its weight over the root of the number of heads.
Pointing at a token shows only its own lines, and a head's chip turns it on and off, all without the
server. Long inputs scroll inside the view, and lines too faint to see are not sent.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from explorer.charts.figure_data import Figure
from explorer.components import events, wire
from explorer.components.events import Place
from explorer.components.mounting import View, no_figures
from explorer.text.token_labels import Label

FAINT = 0.005
"""Weights below this are dropped from inputs longer than `SHORT_INPUT`: nobody sees such a line."""

SHORT_INPUT = 64

LINES_HTML = """
<div class="view lines">
  <div class="head"><div class="sentence idle"></div></div>
  <div class="heads" role="group" aria-label="Heads drawn"></div>
  <div class="stage" tabindex="0" role="group" aria-label="Tokens, arrow keys move">
    <div class="length"></div>
    <canvas></canvas>
  </div>
  <div class="foot"><span class="notes"></span><span class="hint"></span></div>
</div>
"""

LINES_WORDS = {
    "toggle": "Click to show or hide this head, double-click to show it alone",
    "none": ("no drawn head attends from {row}", "no drawn head attends to {column}"),
    "most": ("{row} attends most to {column}", "{column} is attended to most by {row}"),
    "also": "; lines as strong: {count} more",
}
"""`none` and `most` have a sentence for a row and one for a column; `also` follows for equals."""
TOO_FAINT = (
    "no drawn head has {faint:.2g} or more from {{row}}",
    "no drawn head has {faint:.2g} or more on {{column}}",
)
"""Instead of `none` where fainter lines are not sent."""

_VIEW = View("lines", LINES_HTML)


def lines(
    weights: Tensor,
    rows: Sequence[Label],
    columns: Sequence[Label],
    *,
    key: str,
    title: str,
    drawn: Sequence[int] | None = None,
    pinned: Place | None = None,
    on_choice: Callable[[tuple[int, ...], Place | None], None] | None = None,
    row_name: str = "query",
    column_name: str = "key",
    names: Sequence[str] | None = None,
    hues: Sequence[float] | None = None,
    top: float | None = 1.0,
    scaling: str = "all",
    log: bool = False,
    figures: Callable[[], Sequence[Figure]] = no_figures,
) -> None:
    """Draw `weights` (heads, queries, keys); at first those in `drawn`, or all of them.

    `title` says whose heads they are, `names` are their names and `hues` their places around
    the wheel, 0 to 1. A line is full at `top`, at the largest value there is where that is
    None, or at the largest of its head's row or column (`scaling`); `log` spreads the
    strengths over three decades. `pinned` is the token that is pinned at first, as its side
    (0 is a row, 1 a column) and its place. With `on_choice`, drawing other heads, or pinning
    another token, is one rerun, once the hand rests, that calls it with both.
    """

    def choose() -> None:
        choice = events.chosen(key)
        numbers = choice.get("drawn") if isinstance(choice, dict) else None
        if not on_choice or not isinstance(numbers, list) or not numbers:
            return
        heads = tuple(head for head in range(len(weights)) if head in numbers)
        on_choice(heads, events.on_a_side(choice.get("held"), len(rows), len(columns)))

    _VIEW(
        figures=figures,
        title=title,
        key=key,
        data=encode(
            weights,
            rows,
            columns,
            title=title,
            words=(row_name, column_name),
            top=top,
            names=names,
            hues=hues,
            name=key,
            scaling=scaling,
            log=log,
            tells=on_choice is not None,
        ),
        choice={"drawn": None if drawn is None else list(drawn), "held": list(pinned or ())},
        on_chosen_change=choose,
    )


def encode(
    weights: Tensor,
    rows: Sequence[Label],
    columns: Sequence[Label],
    *,
    title: str,
    words: tuple[str, str],
    top: float | None = 1.0,
    names: Sequence[str] | None = None,
    hues: Sequence[float] | None = None,
    **more: Any,
) -> bytes:
    """All heads as one message; `more` is what the browser alone reads, by its names there."""
    wire.check_shape(weights, rows, columns)
    array = np.nan_to_num(wire.as_array(weights), nan=0.0, posinf=0.0, neginf=0.0)
    if top is None:
        top = float(array.max(initial=0.0)) or 1.0
    dropped = max(len(rows), len(columns)) > SHORT_INPUT
    faint = FAINT * top
    if dropped:
        array = np.where(array < faint, 0.0, array)
    codes, planes = wire.encode_picture(array)
    hint = f"{words[0]} left, {words[1]} right. Point at a token to see its lines alone."
    sentences: dict[str, Any] = {"title": title, "row": words[0], "column": words[1]}
    sentences |= {"hint": hint, **LINES_WORDS}
    if dropped:
        sentences["none"] = tuple(none.format(faint=faint) for none in TOO_FAINT)
    header: dict[str, Any] = {
        **codes,
        **more,
        "words": sentences,
        "faint": float(f"{faint:.2g}") if dropped else 0,
        "names": [*(names or (f"head {head}" for head in range(len(weights))))],
        "hues": [*(hues or (head / len(weights) for head in range(len(weights))))],
        "top": top,
        **wire.labelled(rows, columns),
    }
    return wire.pack(header, planes)
