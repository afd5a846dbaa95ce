"""Tokens as chips, the same on every page.

With `text` the sentence stands above its tokens, and each shows where the other is: an
emoji may be four tokens over one character, so a chip lights up its span of the text. The
tokens of one character stand in one frame under it. With `values` a chip is the darker the
larger its number is, which pointing at it says.
"""

from collections.abc import Callable, Sequence
from typing import Any

from explorer.charts.figure_data import Figure, TableData, Value
from explorer.components import events, wire
from explorer.components.mounting import View
from explorer.text.number_format import three
from explorer.text.token_labels import Label, groups_of, specials, text_of, texts

MOST_CHIPS = 4_000
"""More chips would slow the browser; the rest is counted, not drawn."""

CHIPS_HTML = """
<div class="view chips">
  <div class="text" dir="auto" hidden></div>
  <div class="head"><div class="sentence idle" id="said"></div></div>
  <ol class="row"></ol>
  <div class="rest" hidden></div>
</div>
"""

_VIEW = View("chips", CHIPS_HTML)


def chips(
    tokens: Sequence[Label],
    *,
    key: str,
    text: str | None = None,
    highlight: int | Sequence[int] | None = None,
    later: int | None = None,
    on_pick: Callable[[int], None] | None = None,
    height: int | None = None,
    below: Sequence[Label] | None = None,
    values: Sequence[float] | None = None,
    unit: str = "",
    prompt: int | None = None,
) -> int | None:
    """Draw the tokens; `highlight` marks some of them by their place, those from `later` on are
    faint. `values` has a number of every token, in this `unit`, negative where it has none.

    With `on_pick` a chip can be clicked: it is called with the token's place before
    the script runs, and the place is returned once. `height` bounds the view, which
    then scrolls by itself; without it the view is as high as its chips. `below` are as many
    tokens of another text: each stands under its counterpart. With `prompt` they stand as a text,
    and those behind so many are strong.
    """

    def figures() -> list[Figure]:
        table: dict[str, Sequence[Value]] = {"token": texts(tokens)}
        table |= {} if below is None else {"below": texts(below)}
        table |= {} if values is None else {unit or "value": list(values)}
        return [TableData(table, "Tokens")]

    marked = [highlight] if isinstance(highlight, int) else list(highlight or [])
    result = _VIEW(
        key=key,
        data=encode(
            tokens,
            text,
            below or [],
            values or [],
            unit,
            name=key,
            pickable=on_pick is not None,
            prompt=prompt,
        ),
        height=height or "content",
        choice=[len(tokens) if later is None else later, *marked],
        figures=figures,
        on_picked_change=events.on_place(key, "picked", len(tokens), on_pick),
    )
    return events.place(result.get("picked"), len(tokens))


def encode(
    tokens: Sequence[Label],
    text: str | None,
    below: Sequence[Label] = (),
    values: Sequence[float] = (),
    unit: str = "",
    **more: Any,
) -> bytes:
    """The chips as one message; the ids and the spans only where tokens have them.

    `more` is what the browser alone reads, by its names there.
    """
    first, below, numbers = tokens[:MOST_CHIPS], below[:MOST_CHIPS], values[:MOST_CHIPS]
    top = max([*numbers, 0.0])
    end = getattr(first[-1], "end", None) if first else None
    header = {
        **more,
        "labels": texts(first),
        "own": [text_of(token) for token in first],
        "groups": [
            [group.first, group.last, text_of(group.characters)] for group in groups_of(first)
        ],
        "muted": specials(first),
        "ids": [getattr(token, "id", None) for token in first],
        "spans": [[getattr(token, "start", None), getattr(token, "end", None)] for token in first],
        "total": len(tokens),
        "shades": [max(0.0, value) / top if top else 0.0 for value in numbers],
        "said": [f"{three(value)} {unit}".strip() if value >= 0 else "" for value in numbers],
        "text": text if text is None or len(tokens) <= MOST_CHIPS else text[:end],
        "below": texts(below),
        "mutedBelow": specials(below),
    }
    return wire.pack(header)
