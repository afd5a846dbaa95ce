"""What of a stage is drawn: a cut of its values around the chosen token, with its labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.analysis.walk_line import Stage
from explorer.analysis.walk_values import Walk
from explorer.text import Token

NUMBERS, MOST_ROWS, MOST_SQUARE, LIKELIEST = 12, 16, 128, 12
"""Numbers of a vector at a time, tokens at a time, a side of what is queries by keys, answers."""


@dataclass(frozen=True, eq=False)
class Cut:
    """Some rows and columns of a stage: `values` (rows, columns), and which ones they are."""

    values: Tensor
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    height: int
    width: int
    row_labels: tuple[Token | str, ...]
    column_labels: tuple[Token | str, ...]
    by_size: bool = False

    @property
    def is_cut(self) -> bool:
        return self.height > len(self.rows) or self.width > len(self.columns)


def is_square(stage: Stage) -> bool:
    """Whether it is about queries and keys."""
    return stage.chain[-1][-1] == "keys"


def row_stack(stage: Stage) -> str:
    """The stack whose tokens the rows stand for: cross-attention has keys of the source."""
    return "encoder" if "source tokens" in stage.chain[-1] else stage.stack


def columns_are(stage: Stage) -> str:
    """What a column is: a key, an option to answer with, or a number of a vector."""
    if stage.kind in ("logits", "class logits", "probabilities"):
        return "option"
    return "key" if is_square(stage) else "number"


def is_of_text(walk: Walk, stage: Stage) -> bool:
    """Whether it has one row for the whole text."""
    of_text = ("pooled", "class hidden", "class logits")
    is_last = stage.kind == "probabilities" and walk.config.head == "classifier"
    return stage.kind in of_text or is_last


def tokens_of(walk: Walk, stack: str) -> tuple[Token, ...]:
    return walk.reading.source if stack == "encoder" else walk.reading.target


def windows(width: int) -> list[str]:
    """The cuts of a vector that can be chosen."""
    starts = range(0, width, NUMBERS)
    return [f"{start}–{min(width, start + NUMBERS) - 1}" for start in starts]


def cut(walk: Walk, stage: Stage, token: int, window: int, named: Callable[[int], str]) -> Cut:
    """The values with the chosen token among them; of answers the likeliest for it.

    `window` is which of the cuts of a vector is shown, and `named` calls an option.
    """
    values = walk[stage.name]
    places = walk.rows(stage.name)
    height, width = values.shape
    row = places.index(token) if token in places else 0
    is_a_square, kind = is_square(stage), columns_are(stage)
    most = MOST_SQUARE if is_a_square else MOST_ROWS
    rows = _block(row, height, most)
    by_size = kind == "option" and width > LIKELIEST
    if by_size:
        columns = tuple(values[row].topk(LIKELIEST).indices.tolist())
    elif kind != "number":
        columns = _block(min(row, width - 1), width, most)
    else:
        first = min(window, (width - 1) // NUMBERS) * NUMBERS
        columns = tuple(range(first, min(width, first + NUMBERS)))
    tokens = tokens_of(walk, row_stack(stage))
    keys = tokens_of(walk, "encoder" if stage.branch == "cross_attn" else stage.stack)
    labels: dict[str, Callable[[int], Token | str]] = {
        "key": lambda at: keys[at],
        "option": named,
        "number": str,
    }
    of_text = is_of_text(walk, stage)
    return Cut(
        values=values[torch.tensor(rows)][:, torch.tensor(columns)],
        rows=tuple(places[at] for at in rows),
        columns=columns,
        height=height,
        width=width,
        row_labels=("the text",) if of_text else tuple(tokens[places[at]] for at in rows),
        column_labels=tuple(labels[kind](at) for at in columns),
        by_size=by_size,
    )


def _block(place: int, count: int, most: int) -> tuple[int, ...]:
    """The places that are drawn together with this one: they stay while one walks among them."""
    first = place // most * most
    return tuple(range(first, min(count, first + most)))
