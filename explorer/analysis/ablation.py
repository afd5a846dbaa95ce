"""Many ablations or patches of heads at once, as branches of one recorded pass.

Up to the changed layer all these passes are the same, so each starts from the recorded residual
stream, as one row of a batch. In the last layer of a decoder only the position that is read is
computed. Ablating 144 heads costs less than half the arithmetic of 144 passes, and less in time,
since a batch fills the processor better than one row. Edits of the recorded pass are applied
again in the layers that run again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from explorer.catalog.attention_parts import site
from explorer.catalog.pass_budget import SteppingTap, passing
from explorer.catalog.pass_size import PassShape
from models import Transformer
from models.block import Block, StackContext
from models.cache import BlockCache
from models.interventions import AblateHeads, Edit, PatchHeads
from models.masking import keep_of, padding_mask
from models.output_heads import LanguageModelHead
from models.tap import NO_TAP, Tap
from models.trace import RecordingTap, Trace
from models.transformer import Stack, evaluating

NUMBERS_HELD = 1 << 25
"""Of the widest value of a layer, in one batch: 128 MB."""
LAYERS_AT_ONCE = 4
"""As many layers share a batch where it has room; progress is reported after each batch."""
QUICK, MOST = 10**11, 5 * 10**12
"""Multiplications: two to five seconds on two cores, and two to four minutes; more is refused."""


@dataclass(frozen=True, eq=False)
class RecordedPass:
    """The pass of one text from which others branch off, and the position that is read.

    `trace` holds `CHEAP_SITES`; `inputs` are its ids (1, t), or source and target; `edits`
    were applied in it.
    """

    trace: Trace
    inputs: Sequence[Tensor]
    position: int
    edits: Sequence[Edit] = ()

    @property
    def model(self) -> Transformer:
        return self.trace.model

    @property
    def longest(self) -> int:
        return max(each.shape[1] for each in self.inputs)


def ablate_every_head(
    base: RecordedPass, part: str, layers: int, patched: Callable[[int], Tensor] | None = None
) -> Iterator[Tensor]:
    """For each layer the logits (heads, options); row i is of a pass without head i.

    `patched(layer)` gives other head outputs (heads, t, d_head) to put in place of zero.
    """
    heads = base.model.config.n_heads
    together = max(1, min(LAYERS_AT_ONCE, _rows_at_once(base, part) // heads))
    for first in range(0, layers, together):
        group = range(first, min(layers, first + together))
        values = {layer: None if patched is None else patched(layer) for layer in group}
        if len(group) == 1:
            yield ablate_heads(base, part, first, values[first])
            continue
        edits = {layer: _of_heads(part, layer, range(heads), values[layer]) for layer in group}
        yield from _run_batch(base, part, edits, heads).split(heads)


def ablate_heads(
    base: RecordedPass, part: str, layer: int, patched: Tensor | None = None
) -> Tensor:
    """The same for the heads of one layer."""

    def edit_of(rows: range) -> Edit:
        return _of_heads(part, layer, rows, patched)

    return run_branches(base, part, layer, base.model.config.n_heads, edit_of)


def _of_heads(part: str, layer: int, heads: range, patched: Tensor | None) -> Edit:
    at, which = f"{site(part, layer)}.head_out", tuple(heads)
    return AblateHeads(at, which) if patched is None else PatchHeads(at, which, patched)


def run_branches(
    base: RecordedPass,
    part: str,
    layer: int,
    count: int,
    edit_of: Callable[[range], Edit],
    widest: int = 0,
    report: Callable[[float], None] = lambda done: None,
) -> Tensor:
    """Logits (count, options) of `count` passes that branch off at this layer.

    `edit_of(rows)` is the edit of a batch with these rows, at a site of this layer, applied
    after those of the recorded pass. `widest` is how many numbers a row holds in the layer,
    where that is more than the feed-forward needs. `report` gets the share that is done.
    """
    at_once = _rows_at_once(base, part, widest)
    found = []
    for first in range(0, count, at_once):
        rows = range(first, min(count, first + at_once))
        found.append(_run_batch(base, part, {layer: edit_of(rows)}, len(rows)))
        report(rows.stop / count)
    return found[0] if len(found) == 1 else torch.cat(found)  # a copy is not free


def _rows_at_once(base: RecordedPass, part: str, widest: int = 0) -> int:
    """How many passes a batch holds."""
    config = base.model.config
    tokens = base.trace[f"{site(part, 0)}.q"].shape[2]
    numbers = max(widest, tokens * max(config.d_ff, 4 * config.d_model))
    all_weights = 2 * config.n_heads * base.longest**2
    if config.attention_cap is not None:  # scores and weights are held, never fused
        numbers = max(numbers, all_weights)
    of_weights = sum(edit.site.endswith(".weights") for edit in base.edits)
    width = max(config.d_model, config.n_heads * config.head_width)
    held_by_edits = of_weights * all_weights + len(base.edits) * base.longest * width
    return max(1, NUMBERS_HELD // (numbers + held_by_edits))


def multiplications(base: RecordedPass, part: str, layer: int) -> int:
    """About how many one branch at this layer takes; every stack as long as the longest text."""
    config, name, tokens = base.model.config, part.split(".")[0], base.longest
    stack: Stack = getattr(base.model, name)
    blocks = list(stack.blocks)[layer:]
    if config.kind == "encoder-decoder" and name == "encoder":
        blocks += base.model.last_stack.blocks
    weights = sum(each.numel() for block in blocks for each in block.parameters())
    mixed = 2 * len(blocks) * max(config.d_model, config.n_heads * config.head_width) * tokens
    return tokens * (weights + mixed) + config.d_model * config.vocab_size


def _run_batch(base: RecordedPass, part: str, edit_at: Mapping[int, Edit], rows: int) -> Tensor:
    """Logits of passes that branch off at these layers, so many (`rows`) at each, in order."""
    model, config, name = base.model, base.model.config, part.split(".")[0]
    two_stacks = config.kind == "encoder-decoder"
    pad_begins = two_stacks and config.pad_id == config.bos_id
    keeps = [
        keep_of(ids, config.pad_id, pad_begins=n > 0 and pad_begins)
        for n, ids in enumerate(base.inputs)
    ]
    memory_keep = keeps[0] if two_stacks else None
    memory = base.trace["memory"] if two_stacks and name == "decoder" else None
    keep = keeps[-1] if name == "decoder" else keeps[0]
    # Edits name values of all positions, and so does every head but a language model's.
    is_read_at_one = (
        name == "decoder" and isinstance(model.head, LanguageModelHead) and not base.edits
    )
    read_at = slice(base.position, base.position + 1)
    resumed = _ResumedStack(base, name, getattr(model, name), keep, memory, memory_keep)
    lengths = [each.shape[1] for each in base.inputs]
    shape = PassShape(lengths[0], sum(lengths[1:]), rows * len(edit_at), leaves="nothing")
    with passing(config, shape), evaluating(model):
        x = resumed.run(edit_at, rows, base.position if is_read_at_one else None)
        if two_stacks and name == "encoder":
            target, tap = base.inputs[1].expand(len(x), -1), RecordingTap((), base.edits)
            out = model.decode(target, x, _times(len(x), memory_keep), read_at=read_at, tap=tap)
        else:
            read_at = slice(None) if is_read_at_one else read_at
            out = model.read(x, _times(len(x), keep), read_at)
    return out[:, 0] if out.dim() == 3 else out


def _times(rows: int, keep: Tensor | None) -> Tensor | None:
    return None if keep is None else keep.expand(rows, -1)


@dataclass(frozen=True, eq=False)
class _ResumedStack:
    """One stack, resumed in the middle of a recorded pass."""

    base: RecordedPass
    name: str
    stack: Stack
    keep: Tensor | None
    memory: Tensor | None
    memory_keep: Tensor | None

    def run(self, edit_at: Mapping[int, Edit], rows: int, read: int | None) -> Tensor:
        """The normed residual stream at the end, (layers × rows, t, d_model).

        At each layer of `edit_at` so many rows join those that branched off before. Only the
        position `read` is computed in the last layer, (…, 1, d_model), where it is given.
        """
        trace, edits = self.base.trace, self.base.edits
        first, last = min(edit_at), len(self.stack.blocks) - 1
        recorded = trace[f"{self.name}.{first}.resid_pre"]
        around, x = self.around(recorded), recorded[:0]
        for layer in range(first, last + 1):
            position = read if layer == last else None
            streams = []
            if len(x) and position is None:
                streams.append(self.block(layer, x, around, RecordingTap((), edits)))
            elif len(x) and position is not None:
                streams.append(self.last_block_at(x, position))
            if layer in edit_at:
                joins = trace[f"{self.name}.{layer}.resid_pre"].expand(rows, -1, -1)
                tap = RecordingTap((), [*edits, edit_at[layer]])
                joined = self.block(layer, joins, around, tap)
                streams.append(joined if position is None else joined[:, position : position + 1])
            x = torch.cat(streams) if len(streams) > 1 else streams[0]
        normed: Tensor = self.stack.norm(x)
        return normed

    def around(self, x: Tensor, past: int = 0) -> StackContext:
        """Masks and positions of these tokens, which follow so many, before any edit."""
        seen, positions = past + x.shape[1], self.stack.positions
        all_here = self.base.trace[f"{self.name}.positions"]
        here = all_here[..., past:seen]
        keep = None if self.keep is None else self.keep[:, :seen]
        return StackContext(
            masks=self.stack.self_masks(x, past, keep),
            bias=positions.bias(here, all_here[..., :seen]),
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
        tap = SteppingTap(tap.at(self.name).at(str(layer)))
        out: Tensor = self.block_at(layer)(x, around, cache, tap)
        return out

    def block_at(self, layer: int) -> Block:
        found = self.stack.blocks[layer]
        assert isinstance(found, Block)
        return found

    def last_block_at(self, x: Tensor, position: int) -> Tensor:
        """The last block's output at one position, which sees itself and those before it."""
        cache, last = BlockCache(), len(self.stack.blocks) - 1
        here = self.base.trace[f"{self.name}.positions"][..., :position]
        rotate = self.stack.positions.rotation(here)
        self.block_at(last).remember(x[:, :position], rotate, cache)
        one = x[:, position : position + 1]
        return self.block(last, one, self.around(one, position), cache=cache)
