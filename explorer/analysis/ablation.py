"""Every head of a layer switched off or patched, many at a time, from where the passes part.

Up to the layer all these passes are one, and it is recorded: its stream goes on as a
batch with one row per ablation. Of a decoder's last layer only the position that is
read is passed. So 144 heads cost less than half of 144 passes
in arithmetic, and less in time, since a batch fills the processor better than one row.
The edits of the recorded pass are made again in what is passed anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from explorer.catalog.attention_parts import site
from models import Transformer
from models.block import Block, StackContext
from models.cache import BlockCache
from models.heads import LanguageModelHead
from models.interventions import AblateHeads, Edit, PatchHeads
from models.masking import keep_of, padding_mask
from models.tap import NO_TAP, Tap
from models.trace import RecordingTap, Trace
from models.transformer import Stack, evaluating

NUMBERS_HELD = 1 << 25
"""Of the widest value of a layer, in one batch: 128 MB."""
LAYERS_AT_ONCE = 4
"""Whose passes go on as one batch, where it holds them; then the reader is told how far it is."""
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

    def switched_off(rows: range) -> Edit:
        return _off(part, layer, rows, instead)

    heads = model.config.n_heads
    return parted(model, passed, given, part, layer, place, heads, switched_off, edits=edits)


def _off(part: str, layer: int, heads: range, instead: Tensor | None) -> Edit:
    at, which = f"{site(part, layer)}.head_out", tuple(heads)
    return AblateHeads(at, which) if instead is None else PatchHeads(at, which, instead)


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

    `edit_of(rows)` is the edit of a batch with these rows, at a site of this layer, made
    after the `edits` of the recorded pass. `widest` is how many numbers a row takes in the
    layer where that is more than the feed-forward needs. `report` is told after every batch
    which share of the passes is done.
    """
    at_once = _rows_at_once(model, passed, given, f"{site(part, layer)}.q", widest, edits)
    found = []
    with evaluating(model):
        for first in range(0, count, at_once):
            rows = range(first, min(count, first + at_once))
            parting = {layer: edit_of(rows)}
            found.append(_one_batch(model, passed, given, part, parting, place, len(rows), edits))
            report(rows.stop / count)
    return found[0] if len(found) == 1 else torch.cat(found)  # a copy is not free


def _rows_at_once(
    model: Transformer,
    passed: Trace,
    given: Given,
    queries: str,
    widest: int = 0,
    edits: Sequence[Edit] = (),
) -> int:
    """How many passes a batch holds."""
    tokens = passed[queries].shape[2]
    each = max(widest, tokens * max(model.config.d_ff, 4 * model.config.d_model))
    if model.config.attention_cap is not None:  # scores and weights are held, never fused
        each = max(each, 2 * model.config.n_heads * _longest(given) ** 2)
    return max(1, NUMBERS_HELD // (each + _held_by(edits, model, given)))


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
    parting: Mapping[int, Edit],
    place: int,
    rows: int,
    edits: Sequence[Edit],
) -> Tensor:
    """Logits of passes that part at these layers, so many (`rows`) at each, in their order."""
    config, name, read_at = model.config, part.split(".")[0], slice(place, place + 1)
    two_stacks = config.kind == "encoder-decoder"
    starts = two_stacks and config.pad_id == config.bos_id
    keeps = [
        keep_of(ids, config.pad_id, pad_begins=n > 0 and starts) for n, ids in enumerate(given)
    ]
    memory_keep = keeps[0] if two_stacks else None
    memory = passed["memory"] if two_stacks and name == "decoder" else None
    keep = keeps[-1] if name == "decoder" else keeps[0]
    stack: Stack = getattr(model, name)
    at_place = _is_read_at_one_place(model, name, edits)
    middle = _Middle(name, stack, passed[f"{name}.positions"], keep, memory, memory_keep)
    x = middle.run(passed, parting, rows, edits, place if at_place else None)
    if two_stacks and name == "encoder":
        rows, tap = len(x), RecordingTap((), edits)
        target = given[1].expand(rows, -1)
        out = model.decode(target, x, _times(rows, memory_keep), read_at=read_at, tap=tap)
    else:
        out = model.read(x, _times(len(x), keep), slice(None) if at_place else read_at)
    return out[:, 0] if out.dim() == 3 else out


def _is_read_at_one_place(model: Transformer, name: str, edits: Sequence[Edit]) -> bool:
    """Whether the last layer may pass one position: edits name values of all positions."""
    return name == "decoder" and isinstance(model.head, LanguageModelHead) and not edits


def _times(rows: int, keep: Tensor | None) -> Tensor | None:
    return None if keep is None else keep.expand(rows, -1)


@dataclass(frozen=True, eq=False)
class _Middle:
    """A stack in the middle of a recorded pass, whose text and memory have one row."""

    name: str
    stack: Stack
    here: Tensor
    keep: Tensor | None
    memory: Tensor | None
    memory_keep: Tensor | None

    def run(
        self,
        passed: Trace,
        parting: Mapping[int, Edit],
        rows: int,
        edits: Sequence[Edit],
        read: int | None,
    ) -> Tensor:
        """The stream at the end, (layers × rows, t, d_model); (…, 1, d_model) where one is read.

        At each layer of `parting` so many rows join those that parted before.
        """
        unparted, first, last = RecordingTap((), edits), min(parting), len(self.stack.blocks) - 1
        enters = passed[f"{self.name}.{first}.resid_pre"]
        around = self.around(enters)
        x = enters[:0]
        for layer in range(first, last + 1):
            place = read if layer == last else None
            streams = []
            if len(x):
                streams.append(
                    self.block(layer, x, around, unparted)
                    if place is None
                    else self.last_of(x, place)
                )
            if layer in parting:
                joins = passed[f"{self.name}.{layer}.resid_pre"].expand(rows, -1, -1)
                joined = self.block(
                    layer, joins, around, RecordingTap((), [*edits, parting[layer]])
                )
                streams.append(joined if place is None else joined[:, place : place + 1])
            x = torch.cat(streams) if len(streams) > 1 else streams[0]
        normed: Tensor = self.stack.norm(x)
        return normed

    def around(self, x: Tensor, past: int = 0) -> StackContext:
        """What these tokens, which follow so many, see before any edit, which a tap makes again."""
        seen = past + x.shape[1]
        here, positions = self.here[..., past:seen], self.stack.positions
        keep = None if self.keep is None else self.keep[:, :seen]
        return StackContext(
            masks=self.stack.self_masks(x, past, keep),
            bias=positions.bias(here, self.here[..., :seen]),
            rotate=positions.rotation(here),
            memory_mask=None if self.memory_keep is None else padding_mask(self.memory_keep),
        )

    def block(
        self,
        layer: int,
        x: Tensor,
        around: StackContext,
        tap: Tap = NO_TAP,
        cache: BlockCache | None = None,
    ) -> Tensor:
        if self.memory is not None:
            around = replace(around, memory=self.memory.expand(len(x), -1, -1))
        out: Tensor = self.block_at(layer)(x, around, cache, tap.at(self.name).at(str(layer)))
        return out

    def block_at(self, layer: int) -> Block:
        found = self.stack.blocks[layer]
        assert isinstance(found, Block)
        return found

    def last_of(self, x: Tensor, place: int) -> Tensor:
        """What the last block makes of one position, which sees itself and those before it."""
        cache, last = BlockCache(), len(self.stack.blocks) - 1
        rotate = self.stack.positions.rotation(self.here[..., :place])
        self.block_at(last).remember(x[:, :place], rotate, cache)
        one = x[:, place : place + 1]
        return self.block(last, one, self.around(one, place), cache=cache)


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
    """The same, layer after layer; `instead` gives the outputs of the other text in a layer.

    Where there is room the passes of some layers go on together, as a larger batch.
    """
    heads = model.config.n_heads
    room = _rows_at_once(model, passed, given, f"{site(part, 0)}.q", edits=edits)
    together = max(1, min(LAYERS_AT_ONCE, room // heads))
    for first in range(0, layers, together):
        group = range(first, min(layers, first + together))
        others = [None if instead is None else instead(layer) for layer in group]
        if len(group) == 1:
            yield without_heads(model, passed, given, part, first, place, edits, others[0])
            continue
        off = {
            layer: _off(part, layer, range(heads), other)
            for layer, other in zip(group, others, strict=True)
        }
        with evaluating(model):
            found = _one_batch(model, passed, given, part, off, place, heads, edits)
        yield from found.split(heads)
