"""A block made again at a few positions is the block of the pass."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from explorer.analysis.written import block_at
from explorer.parts import site
from explorer.reading import Reading
from models import trace


def close(mine: torch.Tensor, theirs: torch.Tensor) -> None:
    torch.testing.assert_close(mine, theirs, rtol=1e-6, atol=1e-6)


def test_its_heads_what_they_write_and_the_stream_behind_it_are_those_of_the_pass(
    found: Reading,
) -> None:
    sides = [side for side in (found.source, found.target) if side]
    inputs = [torch.tensor([[token.id for token in side]]) for side in sides]
    whole: Any = trace(found.trace.model, *inputs)
    for part in found.parts:
        stack, last = part.name.split(".")[0], len(found.rows(part.name)) - 1
        for layer in range(part.layers):
            at, places = site(part.name, layer), torch.tensor([0, last])
            block = block_at(found, stack, layer, places)
            close(block.after, found.trace[f"{stack}.{layer}.resid_post"][0][places])
            attended = block.attended[part.name]
            close(attended.heads, whole[f"{at}.head_out"][0][:, places])
            close(attended.out, whole[f"{at}.out"][0][places])
            bias = attended.attention.o_proj.bias
            together = sum(attended.through(h, attended.heads[h]) for h in range(part.heads))
            close(together + (0 if bias is None else bias), attended.out)
            if block.mlp is not None:
                close(block.mlp.out, whole[f"{stack}.{layer}.mlp.out"][0][places])


def test_a_value_that_was_changed_is_seen(found: Reading) -> None:
    part = found.parts[0].name
    stack, name = part.split(".")[0], f"{site(part, 0)}.v"
    found.trace.values[name] = found.trace[name].clone()
    found.trace.values[name][..., 0] += 1.0
    after = found.trace[f"{stack}.0.resid_post"][0]
    again = block_at(found, stack, 0, torch.tensor([len(after) - 1])).after
    with pytest.raises(AssertionError):
        close(again, after[-1:])
