"""Every head of a layer switched off or patched, many at a time, from where the passes part.

Up to the layer all these passes are one, and it is recorded: its stream goes on as a
batch with one row per ablation. So 144 heads cost about half of 144 passes in
arithmetic, and less in time, since a batch fills the processor better than one row.
The edits of the recorded pass are made again in what is passed anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from explorer.parts import site
from models import Transformer
from models.block import Surroundings
from models.interventions import Edit, FromOther, Without
from models.masking import keep_of, padding_mask
from models.trace import Recorder, Trace
from models.transformer import Stack, evaluating

NUMBERS_HELD = 1 << 25
"""Of the widest value of a layer, in one batch: 128 MB."""
AT_ONCE, MOST = 10**11, 5 * 10**12
"""Multiplications: two to five seconds on two cores, and two to four minutes; more is refused."""

Given = Sequence[Tensor]
"""What the recorded pass was given: ids (1, t), or source and target."""


def without_heads(
    model: Transformer,
    passed: Trace,
    given: Given,
    part: str,
    layer: int,
    place: int,
    edits: Sequence[Edit] = (),
    instead: Tensor | None = None,
) -> Tensor:
    """Logits (heads, options) at one position, row i from a pass without head i of this layer.

    `passed` holds the sites of a page (`CHEAP_SITES`) of one text, with these edits made.
    Not zero but what stands in `instead`, another text's outputs (heads, t, d_head), takes
    the place of a head where it is given.
    """
    at = f"{site(part, layer)}.head_out"

    def switched_off(rows: range) -> Edit:
        heads = tuple(rows)
        return Without(at, heads) if instead is None else FromOther(at, heads, instead)

    heads = model.config.n_heads
    return parted(model, passed, given, part, layer, place, heads, switched_off, edits=edits)


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
    edits: Sequence[Edit] = (),
    report: Callable[[float], None] = lambda done: None,
) -> Tensor:
    """Logits (count, options) of `count` passes that part at this layer, each by its own edit.

    `edit_of(rows)` is the edit of a batch with these rows, made after the `edits` of the
    recorded pass. `widest` is how many numbers a row takes in the layer where that is more
    than the feed-forward needs. `report` is told after every batch which share of the
    passes is done.
    """
    tokens = passed[f"{site(part, layer)}.q"].shape[2]
    each = max(widest, tokens * max(model.config.d_ff, 4 * model.config.d_model))
    if model.config.attention_cap is not None:  # scores and weights are held, never fused
        each = max(each, 2 * model.config.n_heads * _longest(given) ** 2)
    at_once = max(1, NUMBERS_HELD // (each + _held_by(edits, model, given)))
    found = []
    with evaluating(model):
        for first in range(0, count, at_once):
            rows = range(first, min(count, first + at_once))
            tap = Recorder((), [*edits, edit_of(rows)])
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


def _held_by(edits: Sequence[Edit], model: Transformer, given: Given) -> int:
    """How many numbers of a row a tap holds because these edits change them."""
    tokens, config = _longest(given), model.config
    weights = sum(edit.site.endswith(".weights") for edit in edits)
    wide = max(config.d_model, config.n_heads * config.head_width)
    return weights * 2 * config.n_heads * tokens**2 + len(edits) * tokens * wide


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
    config, name, read_at = model.config, part.split(".")[0], slice(place, place + 1)
    two_stacks = config.kind == "encoder-decoder"
    starts = two_stacks and config.pad_id == config.bos_id
    keeps = [
        keep_of(ids, config.pad_id, pad_begins=n > 0 and starts) for n, ids in enumerate(given)
    ]
    memory_keep = keeps[0] if two_stacks else None
    memory = passed["memory"] if two_stacks and name == "decoder" else None
    keep = keeps[-1] if name == "decoder" else keeps[0]
    x = _blocks(getattr(model, name), name, passed, layer, rows, keep, memory, memory_keep, tap)
    if two_stacks and name == "encoder":
        target = given[1].expand(rows, -1)
        out = model.decode(target, x, _times(rows, memory_keep), read_at=read_at, tap=tap)
    else:
        out = model.read(x, _times(rows, keep), read_at)
    return out[:, 0] if out.dim() == 3 else out


def _times(rows: int, keep: Tensor | None) -> Tensor | None:
    return None if keep is None else keep.expand(rows, -1)


def _blocks(
    stack: Stack,
    name: str,
    passed: Trace,
    first: int,
    rows: int,
    keep: Tensor | None,
    memory: Tensor | None,
    memory_keep: Tensor | None,
    tap: Recorder,
) -> Tensor:
    """The stream from the block `first` to the end of its stack, (rows, t, d_model).

    Masks are as they were before any edit, which the tap makes again.
    """
    enters = passed[f"{name}.{first}.resid_pre"]
    here = passed[f"{name}.positions"]
    around = Surroundings(
        masks=stack.self_masks(enters, 0, keep),
        bias=stack.positions.bias(here, here),
        rotate=stack.positions.rotation(here),
        memory=None if memory is None else memory.expand(rows, -1, -1),
        memory_mask=None if memory_keep is None else padding_mask(memory_keep),
    )
    x = enters.expand(rows, -1, -1)
    for layer in range(first, len(stack.blocks)):
        x = stack.blocks[layer](x, around, None, tap.at(name).at(str(layer)))
    normed: Tensor = stack.norm(x)
    return normed


def every_head(
    model: Transformer,
    passed: Trace,
    given: Given,
    part: str,
    layers: int,
    place: int,
    edits: Sequence[Edit] = (),
    instead: Callable[[int], Tensor] | None = None,
) -> Iterator[Tensor]:
    """The same, layer after layer; `instead` gives the outputs of the other text in a layer."""
    for layer in range(layers):
        other = None if instead is None else instead(layer)
        yield without_heads(model, passed, given, part, layer, place, edits, other)
