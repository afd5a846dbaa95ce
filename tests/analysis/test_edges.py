"""Edges patched as branches, circuits of them, and the curves over their sizes."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from explorer.analysis import batched_passes, circuit_faithfulness
from explorer.analysis.ablation_and_patching import exact_edges, exact_writers, record_text
from explorer.analysis.circuit_faithfulness import (
    NestedCircuits,
    corrupted_pass,
    sizes,
    strongest_edges,
)
from explorer.analysis.output_change import has_words
from explorer.analysis.wiring import Wiring, edge_grid, edges_from, edges_into, wiring_of
from models import TransformerConfig, trace
from models.interventions import Replace
from tests.analysis.contrasts import TOKENS, contrast_of, metric_of, partner_values, without_edge
from tests.analysis.kinds_of_model import CONFIGS, WIRED, each_kind
from tests.closeness import assert_close_to as close
from tests.grids import grid
from tests.tiny import config_of

GROUPED = CONFIGS["rotary, grouped"]
GROUPS = [
    GROUPED,
    config_of("decoder", n_heads=4, n_kv_heads=2, n_layers=3),
    config_of("decoder", positions="alibi", n_kv_heads=1, windows=(3, 2)),
    config_of("decoder", positions="rotary", n_kv_heads=1, qk_norm=True),
    config_of("decoder", n_kv_heads=1, attention_cap=2.0),
    config_of("decoder", n_kv_heads=1, parallel=True),
]
"""Their recorded keys and values are shared, where branches have some for each head."""
EACH_KIND = pytest.mark.parametrize("name", each_kind(WIRED, "masked", "no last norm"))


def one_edge_at_a_time(config: TransformerConfig, differs: int, more: int = 0) -> None:
    """As a branch, as a circuit that lacks it, and as a whole pass with an edit of one input.

    Only a text read forwards has a cache: no position of another is known to be alike.
    """
    contrast, wiring = contrast_of(config, differs, more), wiring_of(config)
    read_at_one = config.kind == "decoder" and config.head == "language-model"
    start = record_text(contrast).start(f"{wiring.stack}.self_attn")
    assert start == (differs if read_at_one else 0)
    edges = [(row, column) for row, column in wiring.is_edge.nonzero().tolist()]
    edges = edges[:: max(1, len(edges) // 24)]
    clean, exact = metric_of(contrast, contrast.clean), dict(exact_edges(contrast, edges))
    every = wiring.is_edge.expand(len(edges), -1, -1).clone()
    for at, edge in enumerate(edges):
        every[at][edge] = False
    left = corrupted_pass(contrast).metrics(every)
    lost = torch.tensor([exact[at] for at in range(len(edges))], dtype=left.dtype)
    close(left, clean - lost, 1e-9)
    alone = [without_edge(contrast, wiring, *edge) for edge in edges[::2]]
    close(left[::2], left.new_tensor(alone), 1e-9)


@EACH_KIND
@pytest.mark.parametrize("more", [0, 1])
def test_an_edge_of_every_kind_of_model_is_a_whole_pass(name: str, more: int) -> None:
    """In a text of the same length, or of another, where partners are patched and nothing else."""
    one_edge_at_a_time(CONFIGS[name], 3, more)


@grid("more, config", (1, -1), [CONFIGS[name] for name in ("decoder", "beside", "mean", "masked")])
def test_a_part_patched_at_partners_is_a_whole_pass(config: TransformerConfig, more: int) -> None:
    contrast, wiring = contrast_of(config, more=more), wiring_of(config)
    both = (contrast.clean, contrast.corrupted)
    own, other = (trace(contrast.model, text, sites=[*wiring.writers]) for text in both)
    clean = metric_of(contrast, contrast.clean)
    lost = {columns[0]: values.tolist() for columns, values in exact_writers(contrast)}
    for site, columns in wiring.columns_at.items():
        aligned = partner_values(contrast, own[site], other[site])
        for at, value in enumerate(lost[columns.start]):
            changed = own[site].clone()
            part = (0, at) if changed.dim() == 4 else (0,)
            changed[part] = aligned[part]
            patched = metric_of(contrast, contrast.clean, Replace(site, changed))
            assert patched == pytest.approx(clean - value)


@grid("differs, config", (0, 1, 3, TOKENS - 1), GROUPS, pairs=False)
def test_so_is_one_behind_any_cache_of_shared_keys(config: TransformerConfig, differs: int) -> None:
    one_edge_at_a_time(config, differs)


def test_in_any_order_and_in_batches_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    contrast = contrast_of(GROUPED)
    edges = [(row, column) for row, column in wiring_of(GROUPED).is_edge.nonzero().tolist()]
    found = dict(exact_edges(contrast, edges))
    backwards = edges[::-1]
    again = dict(exact_edges(contrast, backwards))
    by_edge = {backwards[at]: lost for at, lost in again.items()}
    assert by_edge == pytest.approx({edges[at]: lost for at, lost in found.items()}, abs=1e-12)
    monkeypatch.setattr(batched_passes, "NUMBERS_HELD", 1)
    assert dict(exact_edges(contrast, edges)) == pytest.approx(found, abs=1e-12)
    twice = dict(exact_edges(contrast, [edges[7], edges[7]]))
    assert twice[0] == twice[1] == pytest.approx(found[7], abs=1e-12)
    assert list(exact_edges(contrast, [])) == []


def test_paths_of_a_head_and_into_it_and_their_grid() -> None:
    wiring = wiring_of(config_of("decoder", n_layers=3))
    ends = [wiring.rows[row] for row, _ in edges_from(wiring, 1, 2, "k")]
    kinds = [("feed-forward", 1), *[("head", 2)] * 3, ("feed-forward", 2), ("logits", 0)]
    assert [(end.kind, end.layer) for end in ends] == kinds
    into = edges_into(wiring, 1, 2, "v")
    senders = [wiring.columns[column].kind for _, column in into]
    assert senders == ["embedding", *["head"] * 3, "feed-forward"]
    reading = [row for row in wiring.rows if (row.layer, row.head, row.reads) == (1, 2, "v")]
    assert {wiring.rows[row] for row, _ in into} == {*reading}
    found = edge_grid(wiring, ends, [float(at) for at in range(len(ends))])
    assert found.shape == (4, 3)
    assert found[:, 2].tolist() == [1, 2, 3, 4]
    assert found[3, 1] == 0
    assert int(found.isnan().sum()) == 12 - 5


@EACH_KIND
@pytest.mark.parametrize("more", [0, 1])
def test_a_circuit_lies_between(name: str, more: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All edges are the clean text and none the corrupted one; a batch of them is one by one."""
    config = CONFIGS[name]
    contrast = contrast_of(config, more=more)
    base = corrupted_pass(contrast)
    every, generator = base.wiring.is_edge, torch.Generator().manual_seed(3)
    shares = torch.linspace(0.1, 0.9, 6)[:, None, None]  # of fewer and of more edges
    circuits = (torch.rand(6, *every.shape, generator=generator) < shares) & every
    ends = [metric_of(contrast, contrast.clean), base.metric]
    assert abs(ends[0] - ends[1]) > 1e-4
    assert base.metrics(torch.stack([every, ~every & every])).tolist() == pytest.approx(ends)
    if not more or has_words(config):  # else a token without a partner counts in the output
        corrupted = metric_of(contrast.swapped, contrast.corrupted)
        assert base.metric == pytest.approx(corrupted, abs=1e-12)
    together = base.metrics(circuits)
    assert together.std() > 0
    close(torch.cat([base.metrics(each[None]) for each in circuits]), together)
    assert not every.all(), "what is no edge changes nothing"
    close(base.metrics(circuits | ~every), together)
    close(base.metrics(~circuits), base.metrics(~circuits & every))
    monkeypatch.setattr(circuit_faithfulness, "NUMBERS_HELD", 4 * base.writes.numel())
    assert base.at_once == 4
    close(base.metrics(circuits), together)


WIRING = Wiring("decoder", layers=3, heads=2, has_mlp=True, parallel=False)
EDGES = int(WIRING.is_edge.sum())


@dataclass
class Additive:
    """Stands for a pass in which every edge carries a number of its own, and no two meet."""

    carried: Tensor
    metric: float
    wiring: Wiring = WIRING

    def metrics(self, kept: Tensor) -> Tensor:
        assert kept.dtype == torch.bool
        kept = kept & self.wiring.is_edge
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
    smallest = circuits.smallest(points, enough)
    carried = base.carried.flatten()[circuits.order].cumsum(0) / base.carried.sum()
    fewest = int((carried >= enough).nonzero()[0]) + 1
    assert smallest is not None
    assert float(carried[smallest - 1]) >= enough
    assert 0 <= smallest - fewest <= 0.024 * smallest
    assert circuits.smallest(points, 1.5) is None, "no size is enough"
    assert circuits.smallest(points[:1], 0.9) is None
