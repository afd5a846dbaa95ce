"""A block made again at a few positions is the block of the pass."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from explorer.analysis.written import block_at
from explorer.parts import site
from explorer.reading import Reading
from models import trace


def stacks(found: Reading) -> dict[str, int]:
    return {part.name.split(".")[0]: part.layers for part in found.parts}


def close(mine: torch.Tensor, theirs: torch.Tensor) -> None:
    torch.testing.assert_close(mine, theirs, rtol=1e-6, atol=1e-6)


def test_the_stream_behind_it_is_that_of_the_pass(found: Reading) -> None:
    for stack, layers in stacks(found).items():
        for layer in range(layers):
            after = found.trace[f"{stack}.{layer}.resid_post"][0]
            places = torch.tensor([0, len(after) - 1])
            close(block_at(found, stack, layer, places).after, after[places])


def test_heads_and_what_they_write_are_those_of_the_pass(found: Reading) -> None:
    ids = [torch.tensor([[t.id for t in side]]) for side in (found.source, found.target)]
    whole: Any = trace(found.trace.model, *(each for each in ids if each.numel()))
    for part in found.parts:
        stack = part.name.split(".")[0]
        for layer in range(part.layers):
            at = site(part.name, layer)
            last = torch.tensor([len(found.rows(part.name)) - 1])
            block = block_at(found, stack, layer, last)
            attended = block.attended[part.name]
            close(attended.heads, whole[f"{at}.head_out"][0][:, last])
            close(attended.out, whole[f"{at}.out"][0][last])
            bias = attended.attention.o_proj.bias
            together = sum(attended.through(h, attended.heads[h]) for h in range(part.heads))
            close(together + (0 if bias is None else bias), attended.out)
            if block.mlp is not None:
                close(block.mlp.out, whole[f"{stack}.{layer}.mlp.out"][0][last])


def test_a_value_that_was_changed_is_seen(found: Reading) -> None:
    """The planted mistake: one number of every value."""
    part = found.parts[0].name
    name = f"{site(part, 0)}.v"
    found.trace.values[name] = found.trace[name].clone()
    found.trace.values[name][..., 0] += 1.0
    after = found.trace[f"{part.split('.')[0]}.0.resid_post"][0]
    again = block_at(found, part.split(".")[0], 0, torch.tensor([len(after) - 1])).after
    with pytest.raises(AssertionError):
        close(again, after[-1:])
