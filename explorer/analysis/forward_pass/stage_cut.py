"""The part of a stage that is drawn: rows and columns around the chosen token, and their labels."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.analysis.forward_pass.pass_values import PassValues
from explorer.analysis.forward_pass.stage import Stage
from explorer.text import Token
from explorer.text.token_labels import VisibleText, text_of

DIMENSIONS, MOST_ROWS, MOST_SQUARE = 12, 16, 128
"""The most dimensions of a vector, tokens, and queries or keys that are drawn at a time."""
OWN, FEW, LARGEST = 2, 10, 16
"""Options: at least `OWN` of the chosen token, `FEW` in all where other rows add few, and at most
`LARGEST`."""
BETWEEN = " / "


@dataclass(frozen=True, eq=False)
class StageCut:
    """Some `rows` and `columns` of a stage, with their `values` (rows, columns).

    `height` and `width` are of the whole stage.
    """

    values: Tensor
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    height: int
    width: int
    row_labels: tuple[Token | str, ...]
    column_labels: tuple[Token | str, ...]


def row_stack(stage: Stage) -> str:
    """The stack whose tokens the rows are: cross-attention has keys of the source."""
    return "encoder" if "source tokens" in stage.shapes[-1] else stage.stack


def column_kind(stage: Stage) -> str:
    """A column is a key, an option of the output, or a dimension of a vector."""
    if stage.kind in ("logits", "class logits", "probabilities"):
        return "option"
    return "key" if stage.is_square else "dimension"


def tokens_of(values: PassValues, stack: str) -> tuple[Token, ...]:
    return values.forward.source if stack == "encoder" else values.forward.target


def writes(values: PassValues, stage: Stage) -> bool:
    """Whether each row reads one token and writes another: a step of an answer."""
    return row_stack(stage) == "decoder" and bool(values.forward.output_tokens)


def row_names(values: PassValues, stage: Stage) -> tuple[Token | str, ...]:
    """The label of each position: its token, and the token it writes where there is one."""
    tokens = tokens_of(values, row_stack(stage))
    if not writes(values, stage):
        return tokens
    steps = zip(tokens, values.forward.output_tokens, strict=True)
    return tuple(VisibleText(f"{text_of(read)}{BETWEEN}{text_of(out)}") for read, out in steps)


def windows(width: int) -> list[str]:
    """The ranges of dimensions that can be chosen, for a vector of this width."""
    starts = range(0, width, DIMENSIONS)
    return [f"{start}–{min(width, start + DIMENSIONS) - 1}" for start in starts]


def cut_stage(
    values: PassValues, stage: Stage, token: int, window: int, option_label: Callable[[int], str]
) -> StageCut:
    """The rows around the chosen token, with the largest options or one range of dimensions.

    `window` is the index of the range, and `option_label` gives the label of an option.
    """
    whole, places = values[stage.name], values.rows(stage.name)
    height, width = whole.shape
    row = places.index(token) if token in places else 0
    most = MOST_SQUARE if stage.is_square else MOST_ROWS
    rows = _block(row, height, most)
    names = row_names(values, stage)
    label: Callable[[int], Token | str] = str
    kind = column_kind(stage)
    if kind == "option":
        columns = _largest(whole[torch.tensor(rows)], rows.index(row))
        label = option_label
    elif kind == "key":
        columns = _block(min(row, width - 1), width, most)
        keys = "encoder" if stage.branch == "cross_attn" else stage.stack
        label = tokens_of(values, keys).__getitem__
    else:
        first = min(window, (width - 1) // DIMENSIONS) * DIMENSIONS
        columns = tuple(range(first, min(width, first + DIMENSIONS)))
        names = tokens_of(values, row_stack(stage))  # two labels need more room than there is
    return StageCut(
        values=whole[torch.tensor(rows)][:, torch.tensor(columns)],
        rows=tuple(places[at] for at in rows),
        columns=columns,
        height=height,
        width=width,
        row_labels=(VisibleText("the text"),)
        if stage.per_text
        else tuple(names[places[at]] for at in rows),
        column_labels=tuple(label(at) for at in columns),
    )


def _largest(values: Tensor, row: int) -> tuple[int, ...]:
    """The largest options of `row`, then the largest of every other row of (rows, options)."""
    own = values[row].topk(min(LARGEST, values.shape[1])).indices.tolist()
    best = dict.fromkeys(option for option in values.argmax(-1).tolist() if option not in own[:OWN])
    others = [*best][: LARGEST - OWN]
    mine = [option for option in own if option not in others][: max(OWN, FEW - len(others))]
    return (*mine, *others)


def _block(place: int, count: int, most: int) -> tuple[int, ...]:
    """The block that contains this place: it stays while the choice moves inside it."""
    first = place // most * most
    return tuple(range(first, min(count, first + most)))
