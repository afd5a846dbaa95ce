"""From one weight to the stream: every number is the pass's, and they add up."""

from __future__ import annotations

from itertools import product
from typing import Any

import torch

from explorer.analysis.onward import Onward, onward
from explorer.bench.onward import lines
from explorer.parts import site
from explorer.reading import Reading

close = torch.testing.assert_close


def test_what_the_keys_give_adds_up_to_what_the_head_gives(found: Reading) -> None:
    for part in found.parts:
        last, keys = len(found.rows(part.name)) - 1, range(len(found.columns(part.name)))
        for layer, head in product(range(part.layers), range(part.heads)):
            ways = [onward(found, part.name, layer, head, last, key) for key in keys]
            close(torch.stack([way.given for way in ways]).sum(0), ways[0].head_out)
            close(torch.stack([way.written_for_key for way in ways]).sum(0), ways[0].written)
            assert ways[0].difference < 1e-6


def normed(found: Reading, part: str, way: Onward) -> torch.Tensor:
    """What the norm makes of what it stands behind: the sum, or what the attention writes."""
    stack, kind = part.split(".")
    block: Any = getattr(found.trace.model, stack).blocks[0]
    residual = block.self_residual if kind == "self_attn" else block.cross_residual
    with torch.no_grad():
        if way.where == "post":
            result: torch.Tensor = residual.norm(way.before + way.out)
        else:
            result = residual.out_norm(way.out)
        return result


def test_the_way_and_its_ledger_end_in_the_stream_of_the_pass(found: Reading) -> None:
    for part in found.parts:
        stack, last = part.name.split(".")[0], len(found.rows(part.name)) - 1
        way = onward(found, part.name, 0, part.heads - 1, last, 0)
        close(way.written + way.others + way.bias, way.out)
        if part.name.endswith("self_attn"):
            close(way.before, found.trace[f"{stack}.0.resid_pre"][0, last])
        added = normed(found, part.name, way) if way.where == "sandwich" else way.out
        is_post = way.where == "post"
        close(way.after, normed(found, part.name, way) if is_post else way.before + added)

        rows = lines(way)
        assert ("what it writes, normed" in rows) == (way.where == "sandwich")
        assert ("the stream after: that, normed" in rows) == is_post
        close(list(rows.values())[-1], way.after)
        *_, written, before, after = [v for k, v in rows.items() if "after: that, normed" not in k]
        close(written, added)
        close(before + written, after)


def test_a_planted_mistake_is_seen_in_the_difference(found: Reading) -> None:
    part = found.parts[0].name
    name = f"{site(part, 0)}.v"
    found.trace.values[name] = found.trace[name] * 1.1
    assert onward(found, part, 0, 0, len(found.rows(part)) - 1, 0).difference > 1e-4
