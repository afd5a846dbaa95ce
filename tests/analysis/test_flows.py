"""Rollout, maximum flow and flow of information: against paths, cuts and loops by hand."""

from functools import reduce
from itertools import pairwise, product
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from torch import Tensor, nn

from explorer.analysis import rollout as rollouts
from explorer.analysis.information_flow import (
    AttentionShares,
    BlockShares,
    InformationFlow,
    information_flow,
    route,
)
from explorer.inference.forward_pass import ForwardPass
from models.frozen_scales import sum_norm
from models.normalization import LayerNorm
from models.trace import EVERYTHING, Trace, trace
from tests.analysis.conftest import inputs_of
from tests.closeness import assert_close_to

GRAPHS = some.tuples(
    some.integers(1, 3), some.integers(1, 3), some.integers(0, 99), some.booleans()
)


def stack(layers: int, tokens: int, seed: int, is_causal: bool) -> list[Tensor]:
    """The mixing (t, t) of every layer, of random mean weights."""
    scores = 3 * torch.randn(layers, tokens, tokens, generator=torch.Generator().manual_seed(seed))
    if is_causal:
        scores = scores.masked_fill(torch.ones(tokens, tokens).triu(1) > 0, -torch.inf)
    return [rollouts.half_residual(weights) for weights in scores.double().softmax(-1)]


def test_half_is_looked_up_and_half_stays() -> None:
    weights = torch.tensor([[1.0, 0.0], [0.4, 0.6]], dtype=torch.double)
    assert rollouts.half_residual(weights).tolist() == [[1.0, 0.0], pytest.approx([0.2, 0.8])]
    blind = torch.tensor([[0.0, 0.0], [0.5, 0.5]])
    assert rollouts.half_residual(blind).tolist() == [[1.0, 0.0], [0.25, 0.75]]
    assert rollouts.rollout([rollouts.half_residual(blind)] * 3).sum(-1).tolist() == [1.0, 1.0]
    assert rollouts.rollout([rollouts.half_residual(torch.ones(1, 1))] * 3).tolist() == [[1.0]]
    assert list(rollouts.flow_to([rollouts.half_residual(torch.ones(1, 1))] * 3, 0)) == [1.0]
    (row,) = stack(1, 700, 0, False)
    assert list(rollouts.flow_to([row], 5)) == row[5].tolist()


@given(GRAPHS)
def test_the_edges_carry_a_row_of_the_rollout(graph: tuple[int, int, int, bool]) -> None:
    mixing = stack(*graph)
    last = len(mixing[0]) - 1
    shares = rollouts.edge_shares(mixing, last)
    assert [float(each.sum()) for each in shares] == pytest.approx([1.0] * len(mixing))
    assert_close_to(shares[0].sum(0), rollouts.rollout(mixing)[last])
    for below, above in pairwise(shares):
        assert_close_to(below.sum(1), above.sum(0), what="what comes in goes on")


@given(GRAPHS)
def test_rollout_is_a_product_and_no_less_flows(
    graph: tuple[int, int, int, bool],
) -> None:
    mixing = stack(*graph)
    last = len(mixing[0]) - 1
    found = rollouts.rollout(mixing)
    assert_close_to(found, reduce(torch.matmul, mixing[::-1]))
    for flow, share in zip(rollouts.flow_to(mixing, last), found[last].tolist(), strict=True):
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


@settings(max_examples=12)
@given(some.sampled_from([(1, 3), (2, 2), (3, 2), (2, 3)]), some.integers(0, 9999), some.booleans())
def test_the_flow_is_the_smallest_cut(size: tuple[int, int], seed: int, is_causal: bool) -> None:
    mixing, token = stack(*size, seed, is_causal), size[1] - 1
    cuts = [smallest_cut(mixing, token, column) for column in range(size[1])]
    assert list(rollouts.flow_to(mixing, token)) == pytest.approx(cuts, abs=1e-9)


def test_what_can_be_reached_grows_with_the_layers() -> None:
    two = stack(2, 4, 0, True)
    assert (rollouts.edges_below(two, 0), rollouts.edges_below(two, 3)) == (2, 4 + 10)
    square = torch.ones(5, 5, dtype=torch.bool)
    window = square.tril() & ~square.tril(-2)
    assert rollouts.has_path([window])[4].tolist() == [False, False, False, True, True]
    assert rollouts.has_path([window] * 2)[4].tolist() == [False, False, True, True, True]
    assert bool(rollouts.has_path([window] * 9)[4].all())
    assert rollouts.has_path([torch.zeros(2, 2).bool()]).tolist() == [[True, False], [False, True]]


def behind(norm: nn.Module, part: Tensor, whole: Tensor) -> Tensor:
    """A part of what a norm reads behind that norm, whose scale is that of the whole."""
    if isinstance(norm, nn.Identity):
        return part
    if isinstance(norm, LayerNorm):
        spread = ((whole - whole.mean()).square().mean() + norm.eps).sqrt()
        return (part - part.mean()) / spread * norm.weight
    root = (whole.square().mean() + norm.eps).sqrt()  # type: ignore[operator]
    return part / root * norm.weight  # type: ignore[operator]


def share(after: Tensor, part: Tensor) -> float:
    return max(0.0, float(after.abs().sum() - (after - part).abs().sum()))


def attention_by_hand(
    passed: Trace, block: Any, at: str, before: Tensor, after: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Key shares, the residual stream's, and the longest head, with a loop for everything."""
    name = at.split(".")[-1]
    attention, residual = getattr(block, name), getattr(block, f"{name[:-5]}_residual")
    weights, values, out = passed.weights(at)[0], passed[f"{at}.v"][0], passed[f"{at}.out"][0]
    heads, queries, keys = weights.shape
    width, each = attention.d_head, heads // len(values)
    shares, longest = torch.zeros(queries, keys + 1), torch.zeros(queries, keys, dtype=torch.long)
    for query in range(queries):
        total = before[query] + residual.out_norm(out[query])

        def through(part: Tensor, query: int = query, total: Tensor = total) -> Tensor:
            part = behind(residual.out_norm, part, out[query])
            return behind(sum_norm(residual), part, total)

        for key in range(keys):
            parts = [
                weights[head, query, key] * matrix @ values[head // each, key]
                for head, matrix in enumerate(attention.o_proj.weight.split(width, 1))
            ]
            longest[query, key] = int(torch.stack([through(p).norm() for p in parts]).argmax())
            shares[query, key] = share(after[query], through(torch.stack(parts).sum(0)))
        shares[query, keys] = share(after[query], behind(sum_norm(residual), before[query], total))
    shares = shares / shares.sum(1, keepdim=True)
    return shares[:, :keys], shares[:, keys], longest


def test_every_share_is_that_of_the_watched_pass(found: ForwardPass) -> None:
    passed = trace(found.trace.model, *inputs_of(found), sites=EVERYTHING)
    flow = information_flow(found)
    for stack, blocks in flow.stacks.items():
        for layer, shares in enumerate(blocks):
            block = getattr(found.trace.model, stack).blocks[layer]
            here = f"{stack}.{layer}"
            before = passed[f"{here}.resid_pre"][0]
            for name in ("self_attn", "cross_attn")[: 1 + (block.cross_attn is not None)]:
                site = "resid_cross" if name == "cross_attn" else "resid_mid"
                after = passed[f"{here}.{site}"][0]
                one = shares.attentions[f"{stack}.{name}"]
                at = f"{here}.{name}"
                keys, kept, heads = attention_by_hand(passed, block, at, before, after)
                assert_close_to(one.keys.float(), keys)
                assert_close_to(one.residual.float(), kept)
                weighty = keys > 1e-6
                assert (one.heads == heads)[weighty].all()
                before = after
            if shares.mlp is None:
                assert found.config.d_ff == 0
                continue
            after, out = passed[f"{here}.resid_post"][0], passed[f"{here}.mlp.out"][0]
            for query, mlp in enumerate(shares.mlp):
                residual = block.mlp_residual
                total = before[query] + residual.out_norm(out[query])
                wrote = behind(residual.out_norm, out[query], out[query])
                if isinstance(residual.out_norm, LayerNorm):
                    wrote = wrote + residual.out_norm.bias
                wrote = behind(sum_norm(residual), wrote, total)
                kept = behind(sum_norm(residual), before[query], total)
                both = share(after[query], wrote), share(after[query], kept)
                if sum(both):
                    assert float(mlp) == pytest.approx(both[0] / sum(both), abs=1e-5)
                else:
                    assert mlp.isnan()


def test_nothing_is_lost_on_the_way_back(found: ForwardPass) -> None:
    flow = information_flow(found)
    assert flow.starts.sum(1) == pytest.approx(1)
    for start in flow.starts:
        traced = route(flow, start)
        entered = sum(float(streams[0].sum()) for streams in traced.streams.values())
        assert entered == pytest.approx(1)
        for part, edges in traced.edges.items():
            stack = part.split(".")[0]
            here = traced.streams[stack][1:].sum(1)
            assert (edges.flatten(1).sum(1) <= here + 1e-9).all()
            assert traced.mlp[stack].sum(1).le(here + 1e-9).all()


def test_two_layers_by_hand() -> None:
    nan = torch.full((2,), torch.nan)
    heads = torch.zeros(2, 2, dtype=torch.long)
    attended = AttentionShares(torch.full((2, 2), torch.nan), nan, heads)
    block = BlockShares({"decoder.self_attn": attended}, nan, parallel=False)
    flow = InformationFlow({"decoder": (block,)}, torch.eye(2))
    traced = route(flow, flow.starts[1])
    assert traced.streams["decoder"].tolist() == [[0, 1], [0, 1]]
    assert float(traced.edges["decoder.self_attn"].sum()) == 0
    keys = torch.tensor([[1.0, 0], [0.75, 0]])
    first = AttentionShares(keys, torch.tensor([0.0, 0.25]), heads)
    block = BlockShares({"decoder.self_attn": first}, torch.tensor([0.0, 0.5]), parallel=False)
    flow = InformationFlow({"decoder": (block, block)}, torch.eye(2))
    traced = route(flow, flow.starts[1])
    assert traced.streams["decoder"].tolist() == [[0.9375, 0.0625], [0.75, 0.25], [0, 1]]
    assert traced.edges["decoder.self_attn"][1].tolist() == [[0, 0], [0.75, 0]]
    assert traced.edges["decoder.self_attn"][0].tolist() == [[0.75, 0], [0.1875, 0]]
    assert traced.mlp["decoder"].tolist() == [[0, 0.125], [0, 0.5]]
