"""What of a stage is drawn: a cut of its values around the chosen token, with its labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.analysis.forward_pass.stage_line import Stage
from explorer.analysis.forward_pass.stage_values import Walk
from explorer.text import Token

NUMBERS, MOST_ROWS, MOST_SQUARE = 12, 16, 128
"""Numbers of a vector at a time, tokens at a time, a side of what is queries by keys."""
OWN, FEW, LIKELIEST = 2, 10, 16
"""Answers: so many of the chosen token for certain, so many together where others are as few,
so many at all."""
BETWEEN = "\u00a0/\u00a0"


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
    return walk.forward.source if stack == "encoder" else walk.forward.target


def writes(walk: Walk, stage: Stage) -> bool:
    """Whether each row reads one token and writes another: a step of an answer."""
    return row_stack(stage) == "decoder" and bool(walk.forward.written)


def row_names(walk: Walk, stage: Stage) -> tuple[Token | str, ...]:
    """What each position is called: its token; where it writes another, both."""
    tokens = tokens_of(walk, row_stack(stage))
    if not writes(walk, stage):
        return tokens
    steps = zip(tokens, walk.forward.written, strict=True)
    return tuple(f"{read.label}{BETWEEN}{written.label}" for read, written in steps)


def windows(width: int) -> list[str]:
    """The cuts of a vector that can be chosen."""
    starts = range(0, width, NUMBERS)
    return [f"{start}–{min(width, start + NUMBERS) - 1}" for start in starts]


def cut(walk: Walk, stage: Stage, token: int, window: int, named: Callable[[int], str]) -> Cut:
    """The values with the chosen token among them; of answers the likeliest.

    `window` is which of the cuts of a vector is shown, and `named` calls an option.
    """
    values = walk[stage.name]
    places = walk.rows(stage.name)
    height, width = values.shape
    row = places.index(token) if token in places else 0
    is_a_square, kind = is_square(stage), columns_are(stage)
    most = MOST_SQUARE if is_a_square else MOST_ROWS
    rows = _block(row, height, most)
    if kind == "option":
        columns = _likeliest(values[torch.tensor(rows)], rows.index(row))
    elif kind != "number":
        columns = _block(min(row, width - 1), width, most)
    else:
        first = min(window, (width - 1) // NUMBERS) * NUMBERS
        columns = tuple(range(first, min(width, first + NUMBERS)))
    names = row_names(walk, stage)
    if kind == "number":  # there is no room for two words beside so many numbers
        names = tokens_of(walk, row_stack(stage))
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
        row_labels=("the\u00a0text",) if of_text else tuple(names[places[at]] for at in rows),
        column_labels=tuple(labels[kind](at) for at in columns),
    )


def _likeliest(values: Tensor, row: int) -> tuple[int, ...]:
    """Answers (rows, options): the row's own by size, then the best of every other row."""
    own = values[row].topk(min(LIKELIEST, values.shape[1])).indices.tolist()
    best = dict.fromkeys(each for each in values.argmax(-1).tolist() if each not in own[:OWN])
    others = [*best][: LIKELIEST - OWN]
    mine = [each for each in own if each not in others][: max(OWN, FEW - len(others))]
    return (*mine, *others)


def _block(place: int, count: int, most: int) -> tuple[int, ...]:
    """The places that are drawn together with this one: they stay while one walks among them."""
    first = place // most * most
    return tuple(range(first, min(count, first + most)))
