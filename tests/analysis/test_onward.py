"""From one weight to the stream: every number is the pass's, and they add up."""

from __future__ import annotations

from typing import Any

import torch

from explorer.analysis.onward import Onward, onward
from explorer.bench.onward import lines
from explorer.parts import site
from explorer.reading import Reading


def test_what_the_keys_give_adds_up_to_what_the_head_gives(found: Reading) -> None:
    for part in found.parts:
        last = len(found.rows(part.name)) - 1
        for layer in range(part.layers):
            for head in range(part.heads):
                keys = range(len(found.columns(part.name)))
                ways = [onward(found, part.name, layer, head, last, key) for key in keys]
                together = torch.stack([way.given for way in ways]).sum(0)
                torch.testing.assert_close(together, ways[0].head_out)
                written = torch.stack([way.written_for_key for way in ways]).sum(0)
                torch.testing.assert_close(written, ways[0].written)
                assert ways[0].difference < 1e-6


def test_the_way_ends_in_the_stream_of_the_pass(found: Reading) -> None:
    for part in found.parts:
        stack, last = part.name.split(".")[0], len(found.rows(part.name)) - 1
        way = onward(found, part.name, 0, part.heads - 1, last, 0)
        torch.testing.assert_close(way.written + way.others + way.bias, way.out)
        if part.name.endswith("self_attn"):
            entered = found.trace[f"{stack}.0.resid_pre"][0, last]
            torch.testing.assert_close(way.before, entered)
        again = {"pre": way.before + way.out, "post": normed(found, part.name, way)}
        again["sandwich"] = way.before + normed(found, part.name, way)
        torch.testing.assert_close(way.after, again[way.where])


def test_the_last_rows_of_the_ledger_add_up(found: Reading) -> None:
    for part in found.parts:
        last = len(found.rows(part.name)) - 1
        way = onward(found, part.name, 0, part.heads - 1, last, 0)
        rows = lines(way)
        *_, added, before, after = [v for k, v in rows.items() if "after: that, normed" not in k]
        torch.testing.assert_close(before + added, after)
        assert ("what it writes, normed" in rows) == (way.where == "sandwich")
        assert ("the stream after: that, normed" in rows) == (way.where == "post")
        torch.testing.assert_close(list(rows.values())[-1], way.after)
        if way.where == "sandwich":
            torch.testing.assert_close(added, normed(found, part.name, way))
        if way.where == "post":
            torch.testing.assert_close(way.after, normed(found, part.name, way))


def normed(found: Reading, part: str, way: Onward) -> torch.Tensor:
    """What the norm makes of what it stands behind: the sum, or what the attention writes."""
    stack, kind = part.split(".")
    block: Any = getattr(found.trace.model, stack).blocks[0]
    residual = getattr(block, "self_residual" if kind == "self_attn" else "cross_residual")
    with torch.no_grad():
        if way.where == "post":
            result: torch.Tensor = residual.norm(way.before + way.out)
        else:
            result = residual.out_norm(way.out)
        return result


def test_a_planted_mistake_is_seen_in_the_difference(found: Reading) -> None:
    part = found.parts[0].name
    name = f"{site(part, 0)}.v"
    found.trace.values[name] = found.trace[name] * 1.1
    assert onward(found, part, 0, 0, len(found.rows(part)) - 1, 0).difference > 1e-4
