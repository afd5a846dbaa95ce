"""Every head of a layer switched off, many at a time, from where the passes part.

Up to the layer all these passes are one, and it is recorded: its stream goes on as a
batch with one row per ablation. So 144 heads cost about half of 144 passes in
arithmetic, and less in time, since a batch fills the processor better than one row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from explorer.parts import site
from models import Transformer
from models.block import Surroundings
from models.interventions import Edit, Without
from models.masking import keep_of
from models.trace import Recorder, Trace
from models.transformer import Stack, evaluating

NUMBERS_HELD = 1 << 25
"""Of the widest value of a layer, in one batch: 128 MB."""
AT_ONCE, MOST = 10**11, 5 * 10**12
"""Multiplications: two to five seconds on two cores, and two to four minutes; more is refused."""

Given = Sequence[Tensor]
"""What the recorded pass was given: ids (1, t), or source and target."""


def without_heads(
    model: Transformer, passed: Trace, given: Given, part: str, layer: int, place: int
) -> Tensor:
    """Logits (heads, options) at one position, row i from a pass without head i of this layer.

    `passed` holds the sites of a page (`CHEAP_SITES`) of one text, with no edits.
    """
    at = f"{site(part, layer)}.head_out"

    def switched_off(rows: range) -> Edit:
        return Without(at, tuple(rows))

    return parted(model, passed, given, part, layer, place, model.config.n_heads, switched_off)


def parted(
    model: Transformer,
    passed: Trace,
    given: Given,
    part: str,
    layer: int,
    place: int,
    count: int,
    edit_of: Callable[[range], Edit],
    widest: int = 0,
    report: Callable[[float], None] = lambda done: None,
) -> Tensor:
    """Logits (count, options) of `count` passes that part at this layer, each by its own edit.

    `edit_of(rows)` is the edit of a batch with these rows. `widest` is how many numbers
    a row takes in the layer where that is more than the feed-forward needs. `report` is
    told after every batch which share of the passes is done.
    """
    tokens = passed[f"{site(part, layer)}.q"].shape[2]
    each = max(widest, tokens * max(model.config.d_ff, 4 * model.config.d_model))
    if model.config.attention_cap is not None:  # scores and weights are held, never fused
        each = max(each, 2 * model.config.n_heads * _longest(given) ** 2)
    at_once = max(1, NUMBERS_HELD // each)
    found = []
    with evaluating(model):
        for first in range(0, count, at_once):
            rows = range(first, min(count, first + at_once))
            tap = Recorder((), [edit_of(rows)])
            found.append(_one_batch(model, passed, given, part, layer, place, len(rows), tap))
            report(rows.stop / count)
    return found[0] if len(found) == 1 else torch.cat(found)  # a copy is not free


def multiplications(model: Transformer, given: Given, part: str, layer: int) -> int:
    """About how many one pass takes that parts at this layer; every stack as the longest text."""
    config, name, tokens = model.config, part.split(".")[0], _longest(given)
    stack: Stack = getattr(model, name)
    blocks = list(stack.blocks)[layer:]
    if config.kind == "encoder-decoder" and name == "encoder":
        blocks += model.last_stack.blocks
    weights = sum(each.numel() for block in blocks for each in block.parameters())
    mixed = 2 * len(blocks) * max(config.d_model, config.n_heads * config.head_width) * tokens
    return tokens * (weights + mixed) + config.d_model * config.vocab_size


def _longest(given: Given) -> int:
    return max(each.shape[1] for each in given)


def _one_batch(
    model: Transformer,
    passed: Trace,
    given: Given,
    part: str,
    layer: int,
    place: int,
    rows: int,
    tap: Recorder,
) -> Tensor:
    config, pad = model.config, model.config.pad_id
    name = part.split(".")[0]
    stack: Stack = getattr(model, name)
    keep = keep_of(given[0], pad)
    memory = passed["memory"] if config.kind == "encoder-decoder" and name == "decoder" else None
    x = _blocks(stack, name, passed, layer, rows, memory, tap)
    if config.kind == "encoder-decoder" and name == "encoder":
        target = given[1].expand(rows, -1)
        keep = None if keep is None else keep.expand(rows, -1)
        out = model.decode(target, x, keep, read_at=slice(place, place + 1))
    elif config.kind == "encoder-decoder":
        out = model.read(x, None, slice(place, place + 1))
    else:
        out = model.read(
            x, None if keep is None else keep.expand(rows, -1), slice(place, place + 1)
        )
    return out[:, 0] if out.dim() == 3 else out


def _blocks(
    stack: Stack,
    name: str,
    passed: Trace,
    first: int,
    rows: int,
    memory: Tensor | None,
    tap: Recorder,
) -> Tensor:
    """The stream from the block `first` to the end of its stack, (rows, t, d_model)."""
    x = passed[f"{name}.{first}.resid_pre"].expand(rows, -1, -1)
    here = passed[f"{name}.positions"]
    masks, memory_mask = {}, None
    for layer, block in enumerate(stack.blocks):
        masks[getattr(block, "window", 0)] = passed.mask(f"{name}.{layer}.self_attn")
    if memory is not None:
        memory = memory.expand(rows, -1, -1)
        memory_mask = passed.mask(f"{name}.{first}.cross_attn")[:, :, :1]
    around = Surroundings(
        masks=masks,
        bias=stack.positions.bias(here, here),
        rotate=stack.positions.rotation(here),
        memory=memory,
        memory_mask=memory_mask,
    )
    for layer in range(first, len(stack.blocks)):
        x = stack.blocks[layer](x, around, None, tap.at(name).at(str(layer)))
    normed: Tensor = stack.norm(x)
    return normed


def every_head(
    model: Transformer, passed: Trace, given: Given, part: str, layers: int, place: int
) -> Iterator[Tensor]:
    """The same, layer after layer."""
    for layer in range(layers):
        yield without_heads(model, passed, given, part, layer, place)
