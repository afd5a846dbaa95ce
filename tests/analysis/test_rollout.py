"""Rollout against every path by hand, flow against every cut; rows stay distributions."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from torch import Tensor

from explorer import library
from explorer.analysis.rollout import Network, edges_from, flows, mixed, mixings, reached, rollout
from explorer.reading import read
from tests.shelf import shelf

GRAPHS = some.tuples(
    some.integers(1, 3), some.integers(1, 3), some.integers(0, 9999), some.booleans()
)


def stack(layers: int, tokens: int, seed: int, is_causal: bool) -> list[Tensor]:
    """Mean weights (t, t) of every layer."""
    scores = 3 * torch.randn(layers, tokens, tokens, generator=torch.Generator().manual_seed(seed))
    if is_causal:
        scores = scores.masked_fill(torch.ones(tokens, tokens).triu(1) > 0, -torch.inf)
    return list(scores.double().softmax(-1))


def test_one_layer_by_hand() -> None:
    weights = torch.tensor([[1.0, 0.0], [0.4, 0.6]], dtype=torch.double)
    assert mixed(weights).tolist() == [[1.0, 0.0], pytest.approx([0.2, 0.8])]


@settings(deadline=None, max_examples=40)
@given(GRAPHS)
def test_rollout_is_the_sum_over_all_paths(graph: tuple[int, int, int, bool]) -> None:
    mixing = [mixed(weights) for weights in stack(*graph)]
    tokens = len(mixing[0])
    found = rollout(mixing)
    for start, end in product(range(tokens), repeat=2):
        total = 0.0
        for between in product(range(tokens), repeat=len(mixing) - 1):
            way, share = [start, *between, end], 1.0
            for layer, above, below in zip(reversed(mixing), way, way[1:], strict=False):
                share *= float(layer[above, below])
            total += share
        assert float(found[start, end]) == pytest.approx(total)


def rows_sum_to_one(found: Tensor) -> bool:
    return torch.allclose(found.sum(-1), torch.ones(len(found), dtype=found.dtype))


def test_rows_stay_distributions_and_the_wrong_axis_is_caught(subtests: pytest.Subtests) -> None:
    for is_causal in [True, False]:
        with subtests.test(is_causal=is_causal):
            weights = stack(4, 7, 3, is_causal)
            assert rows_sum_to_one(rollout(map(mixed, weights)))
            eye = torch.eye(7, dtype=torch.double)
            by_columns = [(each + eye) / (each + eye).sum(-2, keepdim=True) for each in weights]
            assert not rows_sum_to_one(rollout(by_columns)), "the mistake of published scripts"
            turned = [mixed(each).T for each in weights]
            assert not rows_sum_to_one(rollout(turned))


def test_a_row_that_looks_nowhere_stays_with_itself() -> None:
    weights = torch.tensor([[0.0, 0.0], [0.5, 0.5]])
    assert mixed(weights).tolist() == [[1.0, 0.0], [0.25, 0.75]]
    assert rollout([mixed(weights)] * 3).sum(-1).tolist() == [1.0, 1.0]


def test_one_token_keeps_everything() -> None:
    assert rollout([mixed(torch.ones(1, 1))] * 3).tolist() == [[1.0]]
    assert list(flows([mixed(torch.ones(1, 1))] * 3, 0)) == [1.0]


def test_what_can_be_reached_grows_with_the_layers() -> None:
    window = torch.ones(5, 5, dtype=torch.bool).tril() & ~torch.ones(5, 5, dtype=torch.bool).tril(
        -2
    )
    assert reached([window])[4].tolist() == [False, False, False, True, True]
    assert bool(reached([window] * 9)[4].all())
    assert reached([window] * 2)[4].tolist() == [False, False, True, True, True]
    assert reached([torch.zeros(2, 2, dtype=torch.bool)]).tolist() == [[True, False], [False, True]]


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
    mixing = [mixed(weights) for weights in stack(*size, seed, is_causal)]
    token = size[1] - 1
    found = list(flows(mixing, token))
    cuts = [smallest_cut(mixing, token, column) for column in range(size[1])]
    assert found == pytest.approx(cuts, abs=1e-9)


@settings(deadline=None, max_examples=30)
@given(GRAPHS)
def test_no_less_flows_than_rolls_out(graph: tuple[int, int, int, bool]) -> None:
    mixing = [mixed(weights) for weights in stack(*graph)]
    token = len(mixing[0]) - 1
    rolled = rollout(mixing)[token].tolist()
    for flow, share in zip(flows(mixing, token), rolled, strict=True):
        assert share - 1e-9 <= flow <= 1 + 1e-9


def test_only_edges_on_the_way_are_counted() -> None:
    mixing = [mixed(weights) for weights in stack(2, 4, 0, True)]
    assert edges_from(mixing, 0) == 2
    assert edges_from(mixing, 3) == 4 + 10


def test_every_stack_of_a_model_rolls_out(tmp_path: Path) -> None:
    folder = shelf(tmp_path / "checkpoints")
    for name in ("translation", "letters", "reviews"):
        reading = read(library.opened_from(folder / name, name), "the cat")
        for part in reading.parts:
            if not part.name.endswith("self_attn"):
                continue
            found = rollout(mixings(reading, part.name, part.layers))
            assert rows_sum_to_one(found)
            assert (rollout(mixings(reading, part.name, 1)) == 0).equal(
                ~reached([reading.mask(part.name)])
            )


def test_one_layer_is_answered_without_solving() -> None:
    row = mixed(stack(1, 700, 0, False)[0])
    assert list(flows([row], 5)) == row[5].tolist()


def test_only_the_edges_below_the_token_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    joined: list[int] = []
    monkeypatch.setattr(Network, "join", lambda self, start, end, room: joined.append(room))
    monkeypatch.setattr(Network, "most", lambda self, source, sink: 0)
    mixing = [mixed(weights) for weights in stack(3, 6, 0, True)]
    for token in range(6):
        joined.clear()
        list(flows(mixing, token))
        assert len(joined) == edges_from(mixing, token)
        assert len(joined) == edges_from([layer > 0 for layer in mixing], token), "masks will do"
