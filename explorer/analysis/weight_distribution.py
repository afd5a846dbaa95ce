"""All weights of every head over many lines, by decile, with examples from each of them.

A few strong cells of one text say little about a head: its behaviour on the full distribution
rarely matches what a narrow task suggests. So the weights of all visible cells of all lines are
sorted, head by head, and cut into ten parts of equally many cells. The examples of a part are at
even distances in its order.
Shapes: L layers, h heads, n visible cells of all lines.
Source: HeadVis (transformer-circuits.pub/2026/headvis).
"""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import StringIO

import torch
from torch import Tensor
from torch.nn.functional import pad

from explorer.analysis.circuits.top_lines import (
    OF_TASK,
    Rows,
    batches,
    built_in_lines,
)
from explorer.catalog.opened_model import OpenModel
from explorer.inference.forward_pass import (
    ForwardPass,
    ForwardPassError,
    encode_text,
    run_batch_uncached,
)
from explorer.system.cooperative import interruptible
from explorer.tasks.bundled_text import REVIEWS
from explorer.text import Token

DECILES, EXAMPLES = 10, 3
MOST_BUILT_IN = 100
"""Built-in lines that are read."""
MOST_WEIGHTS = 1 << 24
"""Of all heads together, while they are sorted: 64 MB."""
TOKENS_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class ReadLines:
    """The first of some lines: those that the model reads and that fit; `count` is that of all."""

    lines: tuple[str, ...]
    rows: Rows
    count: int


@dataclass(frozen=True, eq=False)
class WeightDeciles:
    """The deciles of every head: bounds and shares of all weight, (L, h, 10); NaN below 10 cells.

    `examples` (L, h, 10, 3, 3) are the line, query and key of three cells, and `weights` (L, h, 10,
    3) theirs. `visible` and `masked` are numbers of cells, (L,). `queries` and `keys` are the
    tokens of each line. A head is `finite`, (L, h), if all its weights are.
    """

    low: Tensor
    high: Tensor
    share: Tensor
    examples: Tensor
    weights: Tensor
    finite: Tensor
    visible: Tensor
    masked: Tensor
    queries: tuple[tuple[Token, ...], ...]
    keys: tuple[tuple[Token, ...], ...]


def usual_lines(opened: OpenModel) -> tuple[str, ...]:
    """Examples of the model's task; without a task, review sentences from the whole file."""
    if opened.task is None:
        texts = [row["text"] for row in csv.DictReader(StringIO(REVIEWS.text))]
        return tuple(texts[:: max(1, len(texts) // MOST_BUILT_IN)])[:MOST_BUILT_IN]
    return (built_in_lines(opened, OF_TASK) or opened.task.examples)[:MOST_BUILT_IN]


def readable_lines(
    opened: OpenModel, lines: Sequence[str], most_tokens: int, *, own: bool
) -> ReadLines:
    """As many of the first lines as fit. ForwardPassError where one of the reader's `own` is
    unreadable, or where not even one fits; other unreadable lines are left out."""
    config = opened.config
    heads = config.n_heads * max(config.n_layers, config.n_encoder_layers or 0)
    rows: dict[str, tuple[Token, ...]] = {}
    tokens = weights = 0
    for line in interruptible(lines):
        try:
            row = encode_text(opened.tokenizer, config, line)
        except ForwardPassError:
            if own:
                raise
            continue
        tokens, weights = tokens + len(row), weights + heads * len(row) ** 2
        if tokens > most_tokens or weights > MOST_WEIGHTS:
            break
        rows[line] = row
    if not rows:
        raise ForwardPassError(
            "The first line is too long to sort its weights: type a shorter one."
        )
    return ReadLines(tuple(rows), tuple(rows.values()), len(lines))


def weight_deciles(
    opened: OpenModel, part: str, text: ReadLines, report: Callable[[float], None] = lambda _: None
) -> WeightDeciles:
    """The deciles of all heads of this kind of attention.

    Costs a pass over all lines, and sorting L × h × n numbers; `report` gets the share of lines
    that are read. ForwardPassError where a pass fails.
    """
    layers: list[list[tuple[Tensor, Tensor]]] = []
    tokens: dict[int, tuple[tuple[Token, ...], tuple[Token, ...]]] = {}
    masked: list[int] = []
    config = opened.config
    alone = config.pad_id is None
    for some in batches(text.rows, config.n_heads, equal_lengths=alone, tokens=TOKENS_AT_ONCE):
        passes = run_batch_uncached(opened, tuple(text.lines[at] for at in some))
        for at, forward in zip(some, passes, strict=True):
            queries, keys = (_unpadded(opened, of(part)) for of in (forward.rows, forward.columns))
            tokens[at] = queries, keys
            depth = forward.part(part).layers
            layers, masked = layers or [[] for _ in range(depth)], masked or [0] * depth
            for layer, cells in enumerate(layers):
                cells.append(_visible(forward, part, layer, at, (len(queries), len(keys))))
                masked[layer] += len(queries) * len(keys) - len(cells[-1][1])
        report(len(tokens) / len(text.lines))
    by_layer = [_deciles(*zip(*cells, strict=True)) for cells in layers]
    low, high, share, examples, weights, finite, visible = map(
        torch.stack, zip(*by_layer, strict=True)
    )
    numbers = low, high, share, examples, weights, finite, visible, torch.tensor(masked)
    both = tuple(zip(*(tokens[at] for at in range(len(tokens))), strict=True))
    return WeightDeciles(*numbers, *both)


def _unpadded(opened: OpenModel, tokens: Sequence[Token]) -> tuple[Token, ...]:
    """The tokens without the padding that a batch adds at their end."""
    count = len(tokens)
    while count > 1 and tokens[count - 1].special and tokens[count - 1].id == opened.config.pad_id:
        count -= 1
    return tuple(tokens[:count])


def _visible(
    forward: ForwardPass, part: str, layer: int, line: int, size: tuple[int, int]
) -> tuple[Tensor, Tensor]:
    """The weights (h, n) of the visible cells of a line, and its place, query and key, (n, 3)."""
    rows, columns = size
    weights = torch.cat([*forward.some_heads(part, layer)])[:, :rows, :columns]
    at = forward.mask(part, layer)[:rows, :columns].expand(size).nonzero()
    places = torch.cat([torch.full((len(at), 1), line), at], 1).int()
    return weights[:, at[:, 0], at[:, 1]].float(), places


def _deciles(of_lines: Sequence[Tensor], places_of_lines: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The tensors of `WeightDeciles` for the heads of a layer, up to `visible`."""
    weights, places = torch.cat([*of_lines], 1), torch.cat([*places_of_lines])
    heads, count = weights.shape
    cells, finite = torch.tensor(count), weights.isfinite().all(-1)
    if count < DECILES:
        nothing = weights.new_full((heads, DECILES), torch.nan)
        examples = places.new_zeros(heads, DECILES, EXAMPLES, 3)
        return nothing, nothing, nothing, examples, examples[..., 0].float(), finite, cells
    ordered, order = weights.sort(dim=-1, stable=True)
    ends = torch.arange(DECILES + 1) * count // DECILES
    sums = pad(ordered.double().cumsum(-1), (1, 0))[:, ends]
    shares = (sums.diff(dim=-1) / sums[:, -1:]).float()
    even = (2 * torch.arange(EXAMPLES) + 1) * ends.diff()[:, None] // (2 * EXAMPLES)
    picked = ends[:-1, None] + even
    low, high = ordered[:, ends[:-1]], ordered[:, ends[1:] - 1]
    return low, high, shares, places[order[:, picked]], ordered[:, picked], finite, cells
