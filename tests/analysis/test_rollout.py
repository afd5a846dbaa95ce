"""Rollout against every path by hand, flow against every cut; rows stay distributions."""

from itertools import pairwise, product
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from torch import Tensor

from explorer.analysis.rollout import (
    Network,
    edge_shares,
    edges_below,
    flow_to,
    half_residual,
    half_residual_layers,
    reached,
    rollout,
)
from explorer.catalog import opened_model
from explorer.inference.forward_pass import run_text

GRAPHS = some.tuples(
    some.integers(1, 3), some.integers(1, 3), some.integers(0, 9999), some.booleans()
)


def stack(layers: int, tokens: int, seed: int, is_causal: bool) -> list[Tensor]:
    """The mixing (t, t) of every layer, of random mean weights."""
    scores = 3 * torch.randn(layers, tokens, tokens, generator=torch.Generator().manual_seed(seed))
    if is_causal:
        scores = scores.masked_fill(torch.ones(tokens, tokens).triu(1) > 0, -torch.inf)
    return [half_residual(weights) for weights in scores.double().softmax(-1)]


def test_half_is_looked_up_and_half_stays() -> None:
    weights = torch.tensor([[1.0, 0.0], [0.4, 0.6]], dtype=torch.double)
    assert half_residual(weights).tolist() == [[1.0, 0.0], pytest.approx([0.2, 0.8])]
    blind = torch.tensor([[0.0, 0.0], [0.5, 0.5]])
    assert half_residual(blind).tolist() == [[1.0, 0.0], [0.25, 0.75]]
    assert rollout([half_residual(blind)] * 3).sum(-1).tolist() == [1.0, 1.0]
    assert rollout([half_residual(torch.ones(1, 1))] * 3).tolist() == [[1.0]]
    assert list(flow_to([half_residual(torch.ones(1, 1))] * 3, 0)) == [1.0]


@settings(deadline=None, max_examples=20)
@given(GRAPHS)
def test_the_edges_carry_a_row_of_the_rollout(graph: tuple[int, int, int, bool]) -> None:
    mixing = stack(*graph)
    last = len(mixing[0]) - 1
    shares = edge_shares(mixing, last)
    assert [float(each.sum()) for each in shares] == pytest.approx([1.0] * len(mixing))
    assert torch.allclose(shares[0].sum(0), rollout(mixing)[last])
    for below, above in pairwise(shares):
        assert torch.allclose(below.sum(1), above.sum(0)), "what comes in goes on"


@settings(deadline=None, max_examples=40)
@given(GRAPHS)
def test_rollout_is_the_sum_over_all_paths_and_no_less_flows(
    graph: tuple[int, int, int, bool],
) -> None:
    mixing = stack(*graph)
    tokens, last = len(mixing[0]), len(mixing[0]) - 1
    found = rollout(mixing)
    for start, end in product(range(tokens), repeat=2):
        total = 0.0
        for between in product(range(tokens), repeat=len(mixing) - 1):
            share = 1.0
            for layer, step in zip(mixing[::-1], pairwise([start, *between, end]), strict=True):
                share *= float(layer[step])
            total += share
        assert float(found[start, end]) == pytest.approx(total)
    for flow, share in zip(flow_to(mixing, last), found[last].tolist(), strict=True):
        assert share - 1e-9 <= flow <= 1 + 1e-9


def smallest_cut(mixing: list[Tensor], token: int, column: int) -> float:
    """The least room between the two ends over every way of parting the other places."""
    tokens, top = len(mixing[0]), len(mixing)
    source, sink = top * tokens + token, column
    others = [at for at in range(tokens * (top + 1)) if at not in (source, sink)]
    best = float("inf")
    for sides in product((False, True), repeat=len(others)):
        above = {source, *(at for at, side in zip(others, sides, strict=True) if side)}
        room = 0.0
        for level, layer in enumerate(mixing):
            for row, lower in product(range(tokens), repeat=2):
                start, end = (level + 1) * tokens + row, level * tokens + lower
                if start in above and end not in above:
                    room += float(layer[row, lower])
        best = min(best, room)
    return best


@settings(deadline=None, max_examples=12)
@given(some.sampled_from([(1, 3), (2, 2), (3, 2), (2, 3)]), some.integers(0, 9999), some.booleans())
def test_the_flow_is_the_smallest_cut(size: tuple[int, int], seed: int, is_causal: bool) -> None:
    mixing = stack(*size, seed, is_causal)
    token = size[1] - 1
    cuts = [smallest_cut(mixing, token, column) for column in range(size[1])]
    assert list(flow_to(mixing, token)) == pytest.approx(cuts, abs=1e-9)


def test_one_layer_is_answered_without_solving() -> None:
    (row,) = stack(1, 700, 0, False)
    assert list(flow_to([row], 5)) == row[5].tolist()


def test_only_the_edges_below_the_token_are_counted_and_joined(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    two = stack(2, 4, 0, True)
    assert (edges_below(two, 0), edges_below(two, 3)) == (2, 4 + 10)
    joined: list[int] = []
    monkeypatch.setattr(Network, "join", lambda self, start, end, room: joined.append(room))
    monkeypatch.setattr(Network, "most", lambda self, source, sink: 0)
    mixing = stack(3, 6, 0, True)
    for token in range(6):
        joined.clear()
        list(flow_to(mixing, token))
        assert len(joined) == edges_below(mixing, token)
        assert len(joined) == edges_below([layer > 0 for layer in mixing], token), "masks will do"


def test_what_can_be_reached_grows_with_the_layers() -> None:
    square = torch.ones(5, 5, dtype=torch.bool)
    window = square.tril() & ~square.tril(-2)
    assert reached([window])[4].tolist() == [False, False, False, True, True]
    assert reached([window] * 2)[4].tolist() == [False, False, True, True, True]
    assert bool(reached([window] * 9)[4].all())
    assert reached([torch.zeros(2, 2, dtype=torch.bool)]).tolist() == [[True, False], [False, True]]


def test_every_stack_of_a_model_rolls_out(small_models: Path) -> None:
    for name in ("translation", "letters", "reviews"):
        forward = run_text(opened_model.opened_from(small_models / name, name), "the cat")
        for part in forward.parts:
            if part.name.endswith("self_attn"):
                sums = rollout(half_residual_layers(forward, part.name, part.layers)).sum(-1)
                assert torch.allclose(sums, torch.ones_like(sums)), name
                alone = rollout(half_residual_layers(forward, part.name, 1))
                assert (alone == 0).equal(~reached([forward.mask(part.name)])), name
