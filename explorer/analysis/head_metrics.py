"""What each head does with a text, in numbers: how spread its looks are, and where they go.

Every statistic is a mean over the rows (queries) of a head. A row that may see nothing
has no looks and is left out; how many that are is said. Layer by layer, and in a layer
only as many heads at a time as fit a fixed memory.

Induction and duplicate heads are those of Olsson et al. 2022, In-context Learning and
Induction Heads, and Wang et al. 2022, Interpretability in the Wild, section 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.inference.forward_pass import ForwardPass
from explorer.text import Token
from explorer.text.number_format import three


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
        Statistic(
            "induction",
            "Induction",
            "weight",
            "The weight on the tokens that came after earlier copies of the own token: what "
            "followed it last time. Rows without an earlier copy are left out.",
            same_text=True,
        ),
        Statistic(
            "duplicate",
            "Duplicate",
            "weight",
            "The weight on earlier copies of the own token. Rows without one are left out.",
            same_text=True,
        ),
        Statistic(
            "diagonal",
            "Diagonal",
            "weight",
            "The weight of query i on key i, counted among the tokens of the text without the "
            "special ones. Rows that may not see theirs are left out.",
        ),
        Statistic(
            "anti_diagonal",
            "Anti-diagonal",
            "weight",
            "The weight of query i on key n − 1 − i of n, counted among the tokens of the text "
            "without the special ones. Rows that may not see theirs are left out.",
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

    @property
    def known(self) -> dict[str, Statistic]:
        """The statistics that have a value for some head, by their titles."""
        return {
            each.title: each
            for name, each in STATISTICS.items()
            if not bool(self.values[name].isnan().all())
        }


@dataclass(frozen=True, eq=False)
class Tokens:
    """What stands in the rows or the columns: the numbers of the tokens, and which are special."""

    ids: Tensor
    special: Tensor

    @classmethod
    def of(cls, tokens: Sequence[Token]) -> Tokens:
        special = torch.tensor([token.special for token in tokens], dtype=torch.bool)
        return cls(torch.tensor([token.id for token in tokens], dtype=torch.long), special)


def of_heads(
    weights: Tensor,
    visible: Tensor,
    special: Tensor,
    cells: Mapping[str, Tensor],
    *,
    same_text: bool,
) -> dict[str, Tensor]:
    """The statistics of heads (h, q, k), each (h,). `visible` (q, k) is true where one may look.

    `special` (k,) says which columns are no part of the text; `cells` are those of `patterns`.
    """
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
        **{name: _on(weights, places) for name, places in cells.items()},
    }
    if same_text:
        away = (torch.arange(queries)[:, None] - torch.arange(keys)).abs().double()
        before = weights.diagonal(offset=-1, dim1=-2, dim2=-1)
        found["distance"] = _mean((weights * away).sum(-1), seen > 0)
        found["itself"] = _mean(weights.diagonal(dim1=-2, dim2=-1), seen > 0)
        found["previous"] = _mean(before, seen[1:] > 0)
    nothing = torch.full_like(found["entropy"], math.nan)
    return {name: found.get(name, nothing) for name in STATISTICS}


def patterns(
    rows: Tokens, columns: Tokens, visible: Tensor, *, same_text: bool
) -> dict[str, Tensor]:
    """Where each pattern expects the weight: rows and columns of its visible cells, (2, n).

    The same for all heads of a layer, and few cells among many.
    """
    cells = {
        "diagonal": in_step(rows, columns),
        "anti_diagonal": in_step(rows, columns, backwards=True),
    }
    if same_text:
        copies = earlier_copies(rows)
        cells |= {"duplicate": copies, "induction": copies.roll(1, dims=1)}
    return {name: (where & visible).nonzero().T for name, where in cells.items()}


def earlier_copies(tokens: Tokens) -> Tensor:
    """Where an earlier token (column) is the same as this one (row), (n, n); special ones never.

    The last column is empty, since nothing stands behind it: so shifted by one it says what
    followed an earlier copy, and nothing runs over the edge.
    """
    same = (tokens.ids[:, None] == tokens.ids) & ~tokens.special[:, None]
    return same.tril(-1)


def in_step(rows: Tokens, columns: Tokens, *, backwards: bool = False) -> Tensor:
    """Query i and key i, or key n − 1 − i, among the tokens that are not special; (q, k)."""
    queries, keys = (~rows.special).nonzero()[:, 0], (~columns.special).nonzero()[:, 0]
    if backwards:
        keys = keys.flip(0)
    pairs = min(len(queries), len(keys))
    cells = torch.zeros(len(rows.ids), len(columns.ids), dtype=torch.bool)
    cells[queries[:pairs], keys[:pairs]] = True
    return cells


def _on(weights: Tensor, cells: Tensor) -> Tensor:
    """The weight (h, q, k) on these cells (2, n): the mean over the rows that have one."""
    rows, columns = cells
    return weights[:, rows, columns].sum(-1) / (len(rows.unique()) or math.nan)


def _mean(values: Tensor, rows: Tensor) -> Tensor:
    """The mean over these rows of (h, q); NaN where there are none."""
    return values[:, rows].mean(-1)


def layers(forward: ForwardPass, part: str) -> Iterator[HeadStatistics]:
    """One layer after another, each with its own statistics: (1, heads).

    Costs as many steps as there are weights: layers × heads × queries × keys.
    """
    rows, columns = Tokens.of(forward.rows(part)), Tokens.of(forward.columns(part))
    same_text = part.endswith("self_attn")
    heads = forward.part(part).heads
    for layer in range(forward.part(part).layers):
        visible = forward.mask(part, layer)
        cells = patterns(rows, columns, visible, same_text=same_text)
        # Made before the work: small tensors that stay between large ones that go split the
        # memory, and at 2,000 tokens the process grew by 64 MB a head.
        values = {name: torch.empty(1, heads, dtype=torch.double) for name in STATISTICS}
        done = 0
        for weights in forward.some_heads(part, layer):
            found = of_heads(weights, visible, columns.special, cells, same_text=same_text)
            for name, numbers in found.items():
                values[name][0, done : done + len(weights)] = numbers
            done += len(weights)
        blind = int((~visible.any(-1)).sum())
        yield HeadStatistics(part, values, len(forward.rows(part)), blind)


def joined(found: Sequence[HeadStatistics]) -> HeadStatistics:
    """The layers of one kind of attention as one table."""
    values = {name: torch.cat([each.values[name] for each in found]) for name in STATISTICS}
    first = found[0]
    return HeadStatistics(first.part, values, first.rows, max(each.blind for each in found))


@dataclass(frozen=True)
class Ranked:
    """A head and its number; `place` is 1 for the best, and what reads alike shares a place."""

    place: int
    layer: int
    head: int
    value: float


def ranking(values: Tensor, *, highest: bool = True) -> list[Ranked]:
    """Every head of (layers, heads) that has a number, the best first.

    Those whose numbers are written alike share a place; true ties stay in order.
    """
    heads = values.shape[1]
    known = [(float(value), at) for at, value in enumerate(values.flatten()) if value == value]
    known.sort(key=lambda each: -each[0] if highest else each[0])
    found: list[Ranked] = []
    for at, (value, number) in enumerate(known):
        is_equal = found and three(found[-1].value) == three(value)
        place = found[-1].place if is_equal else at + 1
        found.append(Ranked(place, number // heads, number % heads, value))
    return found
