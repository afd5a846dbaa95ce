"""From one weight to the stream: every number is the pass's, and they add up."""

from __future__ import annotations

import torch

from explorer.analysis.onward import onward
from explorer.parts import site
from explorer.reading import Reading
from tests.analysis.test_contributions import found

__all__ = ["found"]  # the fixture


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
        if not way.has_norm_behind:
            torch.testing.assert_close(way.before + way.out, way.after)


def test_a_planted_mistake_is_seen_in_the_difference(found: Reading) -> None:
    part = found.parts[0].name
    name = f"{site(part, 0)}.v"
    found.trace.values[name] = found.trace[name] * 1.1
    assert onward(found, part, 0, 0, len(found.rows(part)) - 1, 0).difference > 1e-4
