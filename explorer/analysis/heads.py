"""What each head does with a text, in numbers: how spread its looks are, and where they go.

Every statistic is a mean over the rows (queries) of a head. A row that may see nothing
has no looks and is left out; how many that are is said. Layer by layer, and in a layer
only as many heads at a time as fit a fixed memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.parts import site
from explorer.reading import Reading

WEIGHTS_HELD = 1 << 22
"""Attention weights that are in memory together."""


@dataclass(frozen=True)
class Statistic:
    """One number of a head. `top` ends its scale, None where the values do."""

    name: str
    title: str
    unit: str
    meaning: str
    top: float | None = 1.0
    same_text: bool = False
    """Has a meaning only where rows and columns are the same tokens."""


STATISTICS = {
    each.name: each
    for each in (
        Statistic(
            "spread",
            "Entropy share",
            "of the most possible",
            "The entropy of a row over the logarithm of how many keys it sees: 1 looks at all "
            "of them equally, 0 at one. Rows that see a single key are left out.",
        ),
        Statistic("entropy", "Entropy", "nats", "−Σ w ln w of a row: 0 looks at one key.", None),
        Statistic("largest", "Largest", "weight", "The largest weight of a row."),
        Statistic(
            "distance",
            "Distance",
            "tokens",
            "How far away the looks go, in tokens: the mean of |query − key|, weighted.",
            None,
            same_text=True,
        ),
        Statistic("itself", "Itself", "weight", "The weight on the own token.", same_text=True),
        Statistic(
            "previous",
            "Previous",
            "weight",
            "The weight on the token before; the first row has none and is left out.",
            same_text=True,
        ),
        Statistic("first", "First", "weight", "The weight on the first token."),
        Statistic(
            "special",
            "Special",
            "weight",
            "The weight on the tokens that are no part of the text, such as start and end.",
        ),
    )
}


@dataclass(frozen=True, eq=False)
class HeadStatistics:
    """Every statistic of every head of one kind of attention, each (layers, heads).

    NaN where a number has no meaning. Of `rows` queries the `blind` ones see nothing.
    """

    part: str
    values: Mapping[str, Tensor]
    rows: int
    blind: int


def of_heads(
    weights: Tensor, visible: Tensor, special: Tensor, *, same_text: bool
) -> dict[str, Tensor]:
    """The statistics of heads (h, q, k), each (h,). `visible` (q, k) is true where one may look."""
    weights = weights.detach().double()
    queries, keys = weights.shape[1:]
    visible = visible.expand(queries, keys)
    seen = visible.sum(-1)
    entropy = torch.special.entr(weights).sum(-1)
    choosing = seen > 1
    found = {
        "spread": _mean(entropy / seen.clamp(min=2).double().log(), choosing),
        "entropy": _mean(entropy, seen > 0),
        "largest": _mean(weights.amax(-1), seen > 0),
        "first": _mean(weights[..., 0], seen > 0),
        "special": _mean(weights[..., special].sum(-1), seen > 0),
    }
    nothing = torch.full_like(found["entropy"], math.nan)
    if not same_text:
        return {name: found.get(name, nothing) for name in STATISTICS}
    rows, columns = torch.arange(queries)[:, None], torch.arange(keys)[None]
    away = (rows - columns).abs().double()
    itself = weights.diagonal(dim1=-2, dim2=-1)
    before = weights.diagonal(offset=-1, dim1=-2, dim2=-1)
    found["distance"] = _mean((weights * away).sum(-1), seen > 0)
    found["itself"] = _mean(itself, seen > 0)
    found["previous"] = _mean(before, seen[1:] > 0)
    return {name: found[name] for name in STATISTICS}


def _mean(values: Tensor, rows: Tensor) -> Tensor:
    """The mean over these rows of (h, q); NaN where there are none."""
    return values[:, rows].mean(-1)


def layers(reading: Reading, part: str) -> Iterator[HeadStatistics]:
    """One layer after another, each with its own statistics: (1, heads)."""
    columns = reading.columns(part)
    special = torch.tensor([token.special for token in columns], dtype=torch.bool)
    same_text = part.endswith("self_attn")
    for layer in range(reading.part(part).layers):
        visible = reading.mask(part, layer)
        groups = [
            of_heads(weights, visible, special, same_text=same_text)
            for weights in _weights(reading, part, layer)
        ]
        values = {name: torch.cat([group[name] for group in groups])[None] for name in STATISTICS}
        blind = int((~visible.any(-1)).sum())
        yield HeadStatistics(part, values, len(reading.rows(part)), blind)


def _weights(reading: Reading, part: str, layer: int) -> Iterator[Tensor]:
    """The heads of a layer: all at once where they fit the memory, else one by one."""
    heads = reading.part(part).heads
    size = heads * len(reading.rows(part)) * len(reading.columns(part))
    if size <= WEIGHTS_HELD:
        yield reading.trace.weights(site(part, layer))[reading.row]
        return
    for head in range(heads):
        yield reading.weights(part, layer, head)[None]


def joined(found: Sequence[HeadStatistics]) -> HeadStatistics:
    """The layers of one kind of attention as one table."""
    values = {name: torch.cat([each.values[name] for each in found]) for name in STATISTICS}
    first = found[0]
    return HeadStatistics(first.part, values, first.rows, max(each.blind for each in found))
