"""Sizes, orders and shares of circuits, on passes whose metric is known."""

from dataclasses import dataclass, field
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from torch import Tensor

from explorer.analysis.circuit_faithfulness import (
    RANDOM_CIRCUITS,
    SEARCHED,
    NestedCircuits,
    corrupted_pass,
    sizes,
    strongest_edges,
)
from explorer.analysis.wiring import Wiring
from tests.analysis.contrasts import contrast_of, metric_of
from tests.analysis.kinds_of_model import CONFIGS

WIRING = Wiring("decoder", layers=3, heads=2, has_mlp=True, parallel=False)
EDGES = int(WIRING.is_edge.sum())


@dataclass
class Additive:
    """Stands for a pass in which every edge carries a number of its own, and no two meet."""

    carried: Tensor
    metric: float
    wiring: Wiring = WIRING
    asked: list[int] = field(default_factory=list)
    """The edges of each circuit that was passed."""

    def metrics(self, kept: Tensor) -> Tensor:
        assert kept.dtype == torch.bool
        kept = kept & self.wiring.is_edge
        self.asked += kept.flatten(1).sum(1).tolist()
        return self.metric + (kept * self.carried).flatten(1).sum(1)


def additive(seed: int = 0, metric: float = -2.0) -> Any:
    random = torch.Generator().manual_seed(seed)
    return Additive(torch.rand(WIRING.is_edge.shape, generator=random) * WIRING.is_edge, metric)


def nested(*passes: Any) -> NestedCircuits:
    """The circuits of the strongest edges of the first pass."""
    clean = sum(base.metric + float(base.carried.sum()) for base in passes) / len(passes)
    order = strongest_edges(passes[0].carried, WIRING.is_edge)
    return NestedCircuits(lambda: passes, WIRING.is_edge, order, clean)


def test_sizes_grow_by_about_a_factor_of_two_and_the_strongest_edges_come_first() -> None:
    assert sizes(1) == [1]
    assert sizes(2) == [1, 2]
    assert sizes(7) == [1, 2, 5, 7]
    assert sizes(100) == [1, 2, 5, 10, 20, 50, 100]
    assert sizes(140_000)[-4:] == [20_000, 50_000, 100_000, 140_000]
    is_edge = torch.tensor([[True, False, True], [True, True, False]])
    scores = torch.tensor([[1.0, 9.0, -3.0], [2.0, -2.0, 9.0]])
    assert strongest_edges(scores, is_edge).tolist() == [2, 3, 4, 0]
    order = strongest_edges(torch.zeros(WIRING.is_edge.shape), WIRING.is_edge)
    assert order.tolist() == WIRING.is_edge.flatten().nonzero()[:, 0].tolist()


def test_a_curve_gives_the_shares_of_a_circuit_of_what_is_left_and_of_random_ones() -> None:
    passes = [additive(0), additive(1, metric=3.0)]
    circuits = nested(*passes)
    points = list(circuits.curve())
    assert [point.edges for point in points] == sizes(EDGES)
    carried = torch.stack([base.carried.flatten() for base in passes]).mean(0)
    for point in points:
        kept = float(carried[circuits.order[: point.edges]].sum() / carried.sum())
        assert point.circuit == pytest.approx(kept, abs=1e-6)
        assert point.complement == pytest.approx(1 - kept, abs=1e-6)
        assert point.low <= point.random <= point.high
    last = points[-1]
    ends = (last.circuit, last.complement, last.random, last.low, last.high)
    assert ends == pytest.approx((1, 0, 1, 1, 1), abs=1e-6)
    expected = [
        size for size in sizes(EDGES) for size in (size, EDGES - size, *[size] * RANDOM_CIRCUITS)
    ]
    assert passes[0].asked == passes[1].asked == expected


def test_random_circuits_are_the_same_again_from_the_same_seed() -> None:
    """Each holds the smaller one before it, and another seed draws others."""
    circuits = nested(additive())
    once, again, another = (
        [(at.random, at.low, at.high) for at in circuits.curve(seed)] for seed in (0, 0, 1)
    )
    assert once == again
    assert once[:-1] != another[:-1]
    assert [mean for mean, _, _ in once] == sorted(mean for mean, _, _ in once)


@pytest.mark.parametrize("enough", [0.02, 0.5, 0.9, 0.999])
def test_the_smallest_circuit_is_searched_between_two_sizes(enough: float) -> None:
    circuits = nested(base := additive())
    points = list(circuits.curve())
    base.asked.clear()
    smallest = circuits.smallest(points, enough)
    carried = base.carried.flatten()[circuits.order].cumsum(0) / base.carried.sum()
    fewest = int((carried >= enough).nonzero()[0]) + 1
    assert smallest is not None
    assert float(carried[smallest - 1]) >= enough
    assert 0 <= smallest - fewest <= 0.024 * smallest
    assert len(base.asked) <= SEARCHED


def test_there_is_none_where_no_size_is_enough() -> None:
    circuits = nested(additive())
    points = list(circuits.curve())
    assert circuits.smallest(points, 1.5) is None
    assert circuits.smallest(points[:1], 0.9) is None


def test_a_point_takes_one_pass_of_each_corrupted_text() -> None:
    """All edges restore the metric of the clean text, none that of the corrupted one."""
    contrasts = [contrast_of(CONFIGS["rotary, grouped"], differs) for differs in (1, 2, 3)]
    clean = sum(metric_of(contrast, contrast.clean) for contrast in contrasts) / 3
    run = Mock(side_effect=corrupted_pass)
    is_edge = corrupted_pass(contrasts[0]).wiring.is_edge
    order = strongest_edges(torch.zeros(is_edge.shape), is_edge)
    circuits = NestedCircuits(lambda: map(run, contrasts), is_edge, order, clean)
    point = circuits.point([order], len(order))
    assert (point.circuit, point.complement) == pytest.approx((1, 0), abs=1e-9)
    assert run.call_count == len(contrasts)
