"""Sizes, orders and shares of circuits, on passes whose metric is known."""

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor

from explorer.analysis.circuit_faithfulness import (
    RANDOM_CIRCUITS,
    SEARCHED,
    circuit_curve,
    corrupted_pass,
    restored,
    sizes,
    smallest_circuit,
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


def clean_of(passes: list[Any]) -> float:
    return sum(each.metric + float(each.carried.sum()) for each in passes) / len(passes)


def order_of(base: Any) -> Tensor:
    return strongest_edges(base.carried, WIRING.is_edge)


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
    clean, order = clean_of(passes), order_of(passes[0])
    points = list(circuit_curve(passes, clean, order))
    assert [point.edges for point in points] == sizes(EDGES)
    carried = torch.stack([each.carried.flatten() for each in passes]).mean(0)
    for point in points:
        kept = float(carried[order[: point.edges]].sum() / carried.sum())
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
    passes = [additive()]
    clean, order = clean_of(passes), order_of(passes[0])
    once, again, other = (
        [(each.random, each.low, each.high) for each in circuit_curve(passes, clean, order, seed)]
        for seed in (0, 0, 1)
    )
    assert once == again
    assert once[:-1] != other[:-1]
    assert [mean for mean, _, _ in once] == sorted(mean for mean, _, _ in once)


@pytest.mark.parametrize("enough", [0.02, 0.5, 0.9, 0.999])
def test_the_smallest_circuit_is_searched_between_two_sizes(enough: float) -> None:
    passes = [additive()]
    clean, order = clean_of(passes), order_of(passes[0])
    points = list(circuit_curve(passes, clean, order))
    passes[0].asked.clear()
    found = smallest_circuit(passes, clean, order, points, enough)
    carried = passes[0].carried.flatten()[order].cumsum(0) / passes[0].carried.sum()
    fewest = int((carried >= enough).nonzero()[0]) + 1
    assert found is not None
    assert float(carried[found - 1]) >= enough
    assert 0 <= found - fewest <= 0.024 * found
    assert len(passes[0].asked) <= SEARCHED


def test_there_is_none_where_no_size_is_enough() -> None:
    passes = [additive()]
    clean, order = clean_of(passes), order_of(passes[0])
    points = list(circuit_curve(passes, clean, order))
    assert smallest_circuit(passes, clean, order, points, 1.5) is None
    assert smallest_circuit(passes, clean, order, points[:1], 0.9) is None


def test_shares_of_a_pretrained_model_run_from_the_corrupted_text_to_the_clean_one() -> None:
    contrasts = [contrast_of(CONFIGS["rotary, grouped"], differs) for differs in (1, 2, 3)]
    passes = [corrupted_pass(each) for each in contrasts]
    clean = sum(metric_of(each, each.clean) for each in contrasts) / 3
    every = passes[0].wiring.is_edge
    ends = restored(passes, clean, torch.stack([every, ~every]))
    assert ends.tolist() == pytest.approx([1, 0], abs=1e-9)
