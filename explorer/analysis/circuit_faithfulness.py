"""How much of a difference a circuit restores as it grows, beside random circuits of its size.

In the pass of a circuit a reader reads the corrupted residual stream, and, for every edge that is
kept, what its writer wrote in this pass minus what it wrote in the corrupted one. With all edges it
is the pass of the clean text, with none that of the corrupted text: of texts of unequal length, the
pass in which every position with a partner reads the corrupted text, whose metric is then 0.
Faithfulness: the metric of the circuit alone, 0 for the corrupted text and 1 for the clean one.
Completeness: the same of all edges but the circuit's. Both may leave the range from 0 to 1, since
some edges work against the answer.
Shapes: b circuits, w writers, r readers (`explorer.analysis.wiring`), t tokens, d width of the
model, p pairs.
Sources: Have Faith in Faithfulness (Hanna et al. 2024), section 2; Sparse Feature Circuits (Marks
et al. 2024), section 3, for completeness; Towards Automated Circuit Discovery (Conmy et al. 2023),
section 3.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from explorer.analysis.attribution_patching import by_head, writes, writes_at
from explorer.analysis.circuit_metrics import Contrast
from explorer.analysis.wiring import Wiring, wiring_of
from explorer.text.number_format import three
from models.config_fields import PlainData
from models.trace import RecordingTap, Trace
from models.transformer import evaluating

NUMBERS_HELD = 1 << 25
"""Of all writes of a batch of circuits: 128 MB."""


@dataclass(frozen=True, eq=False)
class CorruptedPass:
    """What was read and written in the pass of the corrupted text, from which circuits differ."""

    contrast: Contrast
    wiring: Wiring
    reads: dict[str, Tensor]
    writes: Tensor
    metric: float

    @property
    def at_once(self) -> int:
        """How many circuits are passed together."""
        return max(1, NUMBERS_HELD // self.writes.numel())

    def metrics(self, keep: Tensor) -> Tensor:
        """The metric (b,) of passes that keep these edges, (b, r, w) of bool.

        Costs a pass and r × w × t × d multiplications each.
        """
        contrast, metrics = self.contrast, []
        with evaluating(contrast.model):
            for some in keep.split(self.at_once):
                ids = contrast.clean.expand(len(some), -1)
                tap = _CircuitTap(self, some & self.wiring.is_edge)
                output = contrast.model(ids, read_at=contrast.read_at, tap=tap)
                metrics.append(contrast.metric_of(output))
        return torch.cat(metrics)


def corrupted_pass(contrast: Contrast) -> CorruptedPass:
    """The pass of the corrupted text. WiringError where a model has no edges."""
    wiring = wiring_of(contrast.config)
    sites = [*wiring.writers, *wiring.readers]
    passed: Trace = contrast.corrupted_trace(sites)
    of_writers = {site: by_head(passed[site][0]) for site in wiring.writers}
    base = CorruptedPass(
        contrast,
        wiring,
        {site: passed[site] for site in wiring.readers},
        writes(contrast.model, wiring, of_writers),
        float(contrast.metric_of(passed.output)[0]),
    )
    if not contrast.partners:
        return base
    return replace(base, metric=float(base.metrics(torch.zeros_like(wiring.is_edge)[None])[0]))


class _CircuitTap(RecordingTap):
    """Collects what is written, and gives every reader what its kept edges carry."""

    def __init__(self, base: CorruptedPass, keep: Tensor) -> None:
        super().__init__((*base.wiring.writers, *base.wiring.readers))
        self._base, self._keep, self._rows = base, keep, base.wiring.rows_at
        t, d = base.writes.shape[1:]
        self._differences = base.writes.new_zeros(len(keep), len(base.writes), t * d)
        self._done = [0]

    def __call__(self, name: str, value: Tensor) -> Tensor:
        site, base = self._prefix + name, self._base
        if site in base.wiring.writers:  # what is written here, minus that of the corrupted pass
            write = value if value.dim() == 4 else value[:, None]
            write = writes_at(base.contrast.model, base.wiring, site, write)
            rows = slice(self._done[0], self._done[0] + write.shape[1])
            self._differences[:, rows] = (write - base.writes[rows]).flatten(2)
            self._done[0] = rows.stop
        if site not in self._rows:
            return value
        count = self._done[0]
        keep = self._keep[:, self._rows[site], :count].to(value.dtype)
        carried = (keep @ self._differences[:, :count]).unflatten(-1, base.writes.shape[1:])
        corrupted = base.reads[site]
        return corrupted + (carried if corrupted.dim() == 4 else carried[:, 0])


RANDOM_CIRCUITS = 3
"""Random circuits of every size."""
ENOUGH = 0.9
SEARCHED = 6
"""Circuits tried between two sizes, to find the smallest that is enough."""


@dataclass(frozen=True)
class CircuitPoint(PlainData):
    """The share of the metric that the circuit of so many edges restores, and what is left.

    `random` is the mean over circuits of as many edges drawn at random, `low` and `high` are
    the least and the most of them.
    """

    edges: int
    circuit: float
    complement: float
    random: float
    low: float
    high: float


def sizes(edges: int) -> list[int]:
    """1, 2, 5, 10, 20, 50, … up to all edges."""
    steps = [digit * 10**power for power in range(9) for digit in (1, 2, 5)]
    return [*(size for size in steps if size < edges), edges]


def strongest_edges(scores: Tensor, is_edge: Tensor) -> Tensor:
    """The places of all edges in the flattened matrix (r, w), the largest |score| first."""
    places = is_edge.flatten().nonzero()[:, 0]
    order: Tensor = scores.flatten()[places].abs().argsort(descending=True, stable=True)
    return places[order]


@dataclass(frozen=True, eq=False)
class NestedCircuits:
    """Circuits of the strongest edges, each inside the next larger one, and the passes to run them.

    `passes` gives the passes of the pairs, one at a time, so that no more are in memory. `order`
    has the places of all edges in the flattened matrix (r, w), the strongest first. `clean` is
    the mean of the metric over the clean texts; shares are those of the mean over the pairs.
    """

    passes: Callable[[], Iterable[CorruptedPass]]
    is_edge: Tensor
    order: Tensor
    clean: float

    def curve(self, seed: int = 0) -> Iterator[CircuitPoint]:
        """One point for each size. Costs (2 + draws) × p passes that are about twice a plain one,
        and p plain ones."""
        draws = self.random_orders(seed)
        yield from (self.point(draws, size) for size in sizes(len(self.order)))

    def random_orders(self, seed: int = 0) -> list[Tensor]:
        """All edges in random orders, always the same from one seed."""
        generator, count = torch.Generator().manual_seed(seed), len(self.order)
        return [
            self.order[torch.randperm(count, generator=generator)] for _ in range(RANDOM_CIRCUITS)
        ]

    def point(self, draws: Sequence[Tensor], size: int) -> CircuitPoint:
        """The circuit of the first `size` edges, its complement, and `size` edges of each draw."""
        circuit, *random = (self._mask(order[:size]) for order in (self.order, *draws))
        shares = self.restored_shares(torch.stack([circuit, ~circuit, *random])).tolist()
        random_shares = shares[2:]
        mean = sum(random_shares) / len(random_shares)
        return CircuitPoint(
            size, shares[0], shares[1], mean, min(random_shares), max(random_shares)
        )

    def restored_shares(self, circuits: Tensor) -> Tensor:
        """The share of the difference that these circuits (b, r, w) restore, (b,)."""
        corrupted, metrics = zip(
            *((base.metric, base.metrics(circuits).double()) for base in self.passes()), strict=True
        )
        baseline = sum(corrupted) / len(corrupted)
        return (torch.stack(metrics).mean(0) - baseline) / (self.clean - baseline)

    def smallest(self, points: Sequence[CircuitPoint], enough: float = ENOUGH) -> int | None:
        """The smallest circuit tried that restores `enough`; None where no size of `points` does.

        A bisection between two sizes of `points`: within 2.4 % of the fewest edges where the share
        grows with the size. Where it rises and falls, a smaller circuit may restore it too.
        """
        at = next((at for at, point in enumerate(points) if point.circuit >= enough), None)
        if at is None:
            return None
        few, many = points[at - 1].edges if at else 0, points[at].edges
        for _ in range(SEARCHED):
            if many - few <= 1:
                break
            middle = (few + many) // 2
            share = float(self.restored_shares(self._mask(self.order[:middle])[None]))
            few, many = (few, middle) if share >= enough else (middle, many)
        return many

    def _mask(self, places: Tensor) -> Tensor:
        """A matrix of edges (r, w) that is True at these places."""
        mask = torch.zeros(self.is_edge.numel(), dtype=torch.bool)
        mask[places] = True
        return mask.view_as(self.is_edge)


def smallest_in_words(smallest: int | None, points: Sequence[CircuitPoint]) -> str:
    """The smallest circuit tried that restores enough, and whether the larger ones do too."""
    total, enough = points[-1].edges, f"{100 * ENOUGH:g} % of the difference"
    if smallest is None:
        return f"None of these circuits of up to {total:,} edges restores {enough}."
    share = f"{smallest:,} of {total:,} edges ({three(100 * smallest / total)} %), the strongest"
    sentence = f"Of the circuits tried, the smallest that restores {enough} has {share}"
    larger = [point for point in points if point.edges > smallest]
    below = [point.edges for point in larger if not point.circuit >= ENOUGH]
    if below:
        return f"{sentence}; of the larger ones, that of {below[-1]:,} edges restores less."
    return sentence + ("; all larger ones tried restore it too." if larger else ".")
