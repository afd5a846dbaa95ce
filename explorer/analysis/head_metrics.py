"""Head metrics: numbers that describe the attention of each head over a text.

Every metric is a mean over the rows (queries) of a head, without fully masked rows. Computed
layer by layer, and in a layer for as many heads at a time as fit a fixed memory.

Induction and duplicate heads are those of Olsson et al. 2022, In-context Learning and
Induction Heads, and Wang et al. 2022, Interpretability in the Wild, section 3.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from explorer.inference.forward_pass import ForwardPass
from explorer.text import Token
from explorer.text.number_format import three


@dataclass(frozen=True, eq=False)
class Tokens:
    """The tokens of the rows or the columns: their IDs, and whether each is special."""

    ids: Tensor
    special: Tensor

    @classmethod
    def of(cls, tokens: Sequence[Token]) -> "Tokens":
        special = torch.tensor([token.special for token in tokens], dtype=torch.bool)
        return cls(torch.tensor([token.id for token in tokens], dtype=torch.long), special)


def earlier_copies(tokens: Tokens) -> Tensor:
    """Where an earlier token (column) is the same as this one (row), (n, n); never special ones.

    The last column is empty, so rolled by one it marks the tokens that followed earlier copies.
    """
    same = (tokens.ids[:, None] == tokens.ids) & ~tokens.special[:, None]
    return same.tril(-1)


def aligned_cells(rows: Tokens, columns: Tokens, *, backwards: bool = False) -> Tensor:
    """Query i and key i, or key n − 1 − i, among the tokens that are not special; (q, k)."""
    queries, keys = (~rows.special).nonzero()[:, 0], (~columns.special).nonzero()[:, 0]
    if backwards:
        keys = keys.flip(0)
    pairs = min(len(queries), len(keys))
    cells = torch.zeros(len(rows.ids), len(columns.ids), dtype=torch.bool)
    cells[queries[:pairs], keys[:pairs]] = True
    return cells


def shares_of(weights: Tensor) -> Tensor:
    """Rows (…, k) over their sums; a row of zeros stays."""
    sums = weights.sum(-1, keepdim=True)
    return weights / torch.where(sums == 0, 1, sums)


@dataclass(frozen=True, eq=False)
class HeadRows:
    """The weights (h, q, k) of some heads over one text.

    `visible` (q, k) is the mask, and `special` (k,) is True for special tokens.
    """

    weights: Tensor
    visible: Tensor
    special: Tensor

    @property
    def shares(self) -> Tensor:
        """The weights over the sum of their row, which a model may scale."""
        return shares_of(self.weights)

    @property
    def entropy(self) -> Tensor:
        return torch.special.entr(self.shares).sum(-1)

    @property
    def visible_keys(self) -> Tensor:
        """The number of keys that each query may attend to, at least two, (q,)."""
        return self.visible.sum(-1).clamp(min=2).double()

    @property
    def away(self) -> Tensor:
        """|query − key| of every pair, (q, k)."""
        queries, keys = self.visible.shape
        return (torch.arange(queries)[:, None] - torch.arange(keys)).abs().double()


@dataclass(frozen=True)
class HeadMetric:
    """One number of a head: the mean of `of` (h, q) over the rows that count.

    Without `of` it is the weight on `cells` (q, k), over the rows that have such a cell. A metric
    that is `in_one_text` has no meaning where the keys are of another text. A row counts from
    `fewest` visible keys and position `first` on. `top` is the end of its colour scale, or None
    for the largest value.
    """

    name: str
    title: str
    meaning: str
    of: Callable[[HeadRows], Tensor] | None = None
    cells: Callable[[Tokens, Tokens], Tensor] | None = None
    in_one_text: bool = False
    fewest: int = 1
    first: int = 0
    unit: str = "weight"
    top: float | None = 1.0


METRICS = {
    metric.name: metric
    for metric in (
        HeadMetric(
            "spread",
            "Normalized entropy",
            "How evenly a row spreads its weight: 1 over all visible keys, 0 on a single one. It "
            "is the entropy over the logarithm of the number of visible keys. Rows with a single "
            "visible key are left out.",
            lambda rows: rows.entropy / rows.visible_keys.log(),
            fewest=2,
            unit="of the maximum",
        ),
        HeadMetric(
            "entropy",
            "Entropy",
            "How evenly a row spreads its weight, −Σ w ln w: 0 is all weight on one key.",
            lambda rows: rows.entropy,
            unit="nats",
            top=None,
        ),
        HeadMetric(
            "largest",
            "Maximum weight",
            "The largest weight of a row.",
            lambda rows: rows.weights.amax(-1),
        ),
        HeadMetric(
            "distance",
            "Mean distance",
            "The mean of |query − key| in tokens, weighted by attention.",
            lambda rows: (rows.shares * rows.away).sum(-1),
            in_one_text=True,
            unit="tokens",
            top=None,
        ),
        HeadMetric(
            "itself",
            "Current-token score",
            "The weight on the query's own token.",
            lambda rows: rows.weights.diagonal(dim1=-2, dim2=-1),
            in_one_text=True,
        ),
        HeadMetric(
            "previous",
            "Previous-token score",
            "The weight on the token before; the first row, which has none, is left out.",
            lambda rows: F.pad(rows.weights.diagonal(offset=-1, dim1=-2, dim2=-1), (1, 0)),
            in_one_text=True,
            first=1,
        ),
        HeadMetric(
            "first",
            "First-token score",
            "The weight on the first token.",
            lambda rows: rows.weights[..., 0],
        ),
        HeadMetric(
            "special",
            "Special-token score",
            "The weight on special tokens, such as start and end.",
            lambda rows: rows.weights[..., rows.special].sum(-1),
        ),
        HeadMetric(
            "induction",
            "Induction score",
            "The weight on the tokens that followed earlier occurrences of the query's token. "
            "Rows without an earlier occurrence are left out.",
            cells=lambda rows, _: earlier_copies(rows).roll(1, dims=1),
            in_one_text=True,
        ),
        HeadMetric(
            "duplicate",
            "Duplicate-token score",
            "The weight on earlier occurrences of the query's token. Rows without one are left "
            "out.",
            cells=lambda rows, _: earlier_copies(rows),
            in_one_text=True,
        ),
        HeadMetric(
            "diagonal",
            "Diagonal score",
            "The weight on the key at the query's own position: on the diagonal of the map. "
            "Special tokens are not counted, and rows whose key is masked are left out.",
            cells=lambda rows, columns: aligned_cells(rows, columns),
        ),
        HeadMetric(
            "anti_diagonal",
            "Anti-diagonal score",
            "The weight on the key at the query's position counted from the end, not the start. "
            "Special tokens are not counted, and rows whose key is masked are left out.",
            cells=lambda rows, columns: aligned_cells(rows, columns, backwards=True),
        ),
    )
}
"""All head metrics by name."""


@dataclass(frozen=True, eq=False)
class HeadMetrics:
    """Every metric of every head of one kind of attention, each (layers, heads).

    NaN where a metric has no meaning. Of `rows` queries `fully_masked` are fully masked;
    `counted` is the number of rows in the mean of each metric, (layers,).
    """

    part: str
    values: Mapping[str, Tensor]
    rows: int
    fully_masked: int
    counted: Mapping[str, Tensor]

    @property
    def by_title(self) -> dict[str, HeadMetric]:
        """The metrics that have a value for some head, by their titles."""
        return {
            metric.title: metric
            for name, metric in METRICS.items()
            if not bool(self.values[name].isnan().all())
        }


def metrics_of_heads(
    weights: Tensor,
    visible: Tensor,
    special: Tensor,
    cells: Mapping[str, Tensor],
    *,
    same_text: bool,
) -> dict[str, Tensor]:
    """The metrics of heads (h, q, k), each (h,). `visible` (q, k) is the mask.

    `special` (k,) is True for special tokens; `cells` are those of `pattern_cells`.
    """
    weights = weights.detach().double()
    visible = visible.expand(weights.shape[1:])
    heads, over = HeadRows(weights, visible, special), counted_rows(visible, cells)
    metrics = {}
    for name, metric in METRICS.items():
        values = None
        if name in cells:
            rows, columns = cells[name]
            nothing = weights.new_zeros(weights.shape[:2])
            values = nothing.index_add(1, rows, weights[:, rows, columns])  # (h, q)
        if metric.of is not None and (same_text or not metric.in_one_text):
            values = metric.of(heads)
        metrics[name] = weights.new_full(weights.shape[:1], math.nan)
        if values is not None:
            metrics[name] = values[:, over[name]].mean(-1)  # NaN where no row counts
    return metrics


def counted_rows(visible: Tensor, cells: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The rows (q,) in the mean of each metric: True where a row counts.

    `visible` (q, k) is the mask, `cells` are those of `pattern_cells`.
    """
    keys = visible.sum(-1)
    here = torch.arange(len(keys))
    over = {name: (keys >= row.fewest) & (here >= row.first) for name, row in METRICS.items()}
    for name, (rows, _) in cells.items():
        over[name] = torch.zeros_like(keys, dtype=torch.bool).index_fill(0, rows, True)
    return over


def pattern_cells(
    rows: Tokens, columns: Tokens, visible: Tensor, *, same_text: bool
) -> dict[str, Tensor]:
    """The rows and columns of the visible cells of each pattern, (2, n): few among many."""
    return {
        name: (metric.cells(rows, columns) & visible).nonzero().T
        for name, metric in METRICS.items()
        if metric.cells is not None and (same_text or not metric.in_one_text)
    }


def metrics_by_layer(forward: ForwardPass, part: str) -> Iterator[HeadMetrics]:
    """The metrics (1, heads) of one layer after another.

    Cost grows with layers × heads × queries × keys.
    """
    rows, columns = Tokens.of(forward.rows(part)), Tokens.of(forward.columns(part))
    same_text = part.endswith("self_attn")
    heads = forward.part(part).heads
    for layer in range(forward.part(part).layers):
        visible = forward.mask(part, layer)
        cells = pattern_cells(rows, columns, visible, same_text=same_text)
        # Allocated first: small tensors that stay between large ones that are freed fragment the
        # memory, and at 2,000 tokens the process grew by 64 MB a head.
        values = {name: torch.empty(1, heads, dtype=torch.double) for name in METRICS}
        done = 0
        for weights in forward.some_heads(part, layer):
            metrics = metrics_of_heads(
                weights, visible, columns.special, cells, same_text=same_text
            )
            for name, numbers in metrics.items():
                values[name][0, done : done + len(weights)] = numbers
            done += len(weights)
        fully_masked = int((~visible.any(-1)).sum())
        over = counted_rows(visible.expand(len(rows.ids), len(columns.ids)), cells)
        counted = {name: where.sum().reshape(1) for name, where in over.items()}
        yield HeadMetrics(part, values, len(forward.rows(part)), fully_masked, counted)


def join_layers(layers: Sequence[HeadMetrics]) -> HeadMetrics:
    """The metrics (layers, heads) of all layers from those of each."""
    values = {name: torch.cat([layer.values[name] for layer in layers]) for name in METRICS}
    counted = {name: torch.cat([layer.counted[name] for layer in layers]) for name in METRICS}
    first, masked = layers[0], max(layer.fully_masked for layer in layers)
    return HeadMetrics(first.part, values, first.rows, masked, counted)


@dataclass(frozen=True)
class HeadRank:
    """A head and its number; `place` is 1 for the best, and numbers with equal digits share one."""

    place: int
    layer: int
    head: int
    value: float


def ranking(values: Tensor, *, highest: bool = True) -> list[HeadRank]:
    """Every head of (layers, heads) that has a number, the best first; ties stay in order."""
    heads = values.shape[1]
    numbers = [(float(value), at) for at, value in enumerate(values.flatten()) if value == value]
    numbers.sort(key=lambda item: -item[0] if highest else item[0])
    ranks: list[HeadRank] = []
    for at, (value, number) in enumerate(numbers):
        is_equal = ranks and three(ranks[-1].value) == three(value)
        place = ranks[-1].place if is_equal else at + 1
        ranks.append(HeadRank(place, number // heads, number % heads, value))
    return ranks
