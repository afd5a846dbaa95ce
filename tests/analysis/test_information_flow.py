"""Shares against loops over what a watched pass recorded; the walk keeps all importance."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from explorer.analysis.information_flow import (
    AttentionShares,
    BlockShares,
    InformationFlow,
    information_flow,
    route,
)
from explorer.inference.forward_pass import ForwardPass
from models.normalization import LayerNorm
from models.trace import EVERYTHING, Trace, trace


def watched(found: ForwardPass) -> Trace:
    """The same pass with every value recorded."""
    inputs = [found.source, found.target]
    ids = [torch.tensor([[token.id for token in each]]) for each in inputs if each]
    return trace(found.trace.model, *ids, sites=EVERYTHING)


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
        total = before[query] + residual.output_norm(out[query])

        def through(part: Tensor, query: int = query, total: Tensor = total) -> Tensor:
            part = behind(residual.output_norm, part, out[query])
            return behind(residual.sum_norm, part, total)

        for key in range(keys):
            parts = [
                weights[head, query, key]
                * attention.o_proj.weight[:, head * width :][:, :width]
                @ values[head // each, key]
                for head in range(heads)
            ]
            longest[query, key] = int(torch.stack([through(p).norm() for p in parts]).argmax())
            shares[query, key] = share(after[query], through(torch.stack(parts).sum(0)))
        kept = behind(residual.sum_norm, before[query], total)
        shares[query, keys] = share(after[query], kept)
    shares = shares / shares.sum(1, keepdim=True)
    return shares[:, :keys], shares[:, keys], longest


def test_every_share_is_that_of_the_watched_pass(found: ForwardPass) -> None:
    passed, flow = watched(found), information_flow(found)
    for stack, blocks in flow.stacks.items():
        for layer, shares in enumerate(blocks):
            block = getattr(found.trace.model, stack).blocks[layer]
            here = f"{stack}.{layer}"
            before = passed[f"{here}.resid_pre"][0]
            for name in ("self_attn", "cross_attn") if block.has_cross else ("self_attn",):
                site = "resid_cross" if name == "cross_attn" else "resid_mid"
                after = passed[f"{here}.{site}"][0]
                one = shares.attended[f"{stack}.{name}"]
                keys, kept, heads = attention_by_hand(
                    passed, block, f"{here}.{name}", before, after
                )
                torch.testing.assert_close(one.keys.float(), keys, rtol=1e-4, atol=1e-6)
                torch.testing.assert_close(one.residual.float(), kept, rtol=1e-4, atol=1e-6)
                weighty = keys > 1e-6
                assert (one.heads == heads)[weighty].all()
                before = after
            if shares.mlp is None:
                assert found.config.d_ff == 0
                continue
            after, out = passed[f"{here}.resid_post"][0], passed[f"{here}.mlp.out"][0]
            for query, mlp in enumerate(shares.mlp):
                residual = block.mlp_residual
                total = before[query] + residual.output_norm(out[query])
                wrote = behind(residual.output_norm, out[query], out[query])
                if isinstance(residual.output_norm, LayerNorm):
                    wrote = wrote + residual.output_norm.bias
                wrote = behind(residual.sum_norm, wrote, total)
                kept = behind(residual.sum_norm, before[query], total)
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


def test_what_has_no_share_stays_where_it_is() -> None:
    nan = torch.full((2,), torch.nan)
    attended = AttentionShares(
        torch.full((2, 2), torch.nan), nan, torch.zeros(2, 2, dtype=torch.long)
    )
    block = BlockShares({"decoder.self_attn": attended}, nan, parallel=False)
    flow = InformationFlow({"decoder": (block,)}, torch.eye(2))
    traced = route(flow, flow.starts[1])
    assert traced.streams["decoder"].tolist() == [[0, 1], [0, 1]]
    assert float(traced.edges["decoder.self_attn"].sum()) == 0


def test_an_answer_is_traced_to_the_one_key_that_was_copied() -> None:
    """Two layers by hand: position 1 copies position 0, then half of it is the feed-forward's."""
    first = AttentionShares(
        torch.tensor([[1.0, 0], [0.75, 0]]), torch.tensor([0.0, 0.25]), torch.zeros(2, 2).long()
    )
    block = BlockShares({"decoder.self_attn": first}, torch.tensor([0.0, 0.5]), parallel=False)
    flow = InformationFlow({"decoder": (block, block)}, torch.eye(2))
    traced = route(flow, flow.starts[1])
    assert traced.streams["decoder"].tolist() == [[0.9375, 0.0625], [0.75, 0.25], [0, 1]]
    assert traced.edges["decoder.self_attn"][1].tolist() == [[0, 0], [0.75, 0]]
    assert traced.edges["decoder.self_attn"][0].tolist() == [[0.75, 0], [0.1875, 0]]
    assert traced.mlp["decoder"].tolist() == [[0, 0.125], [0, 0.5]]
