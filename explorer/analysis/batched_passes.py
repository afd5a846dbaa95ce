"""Many edited passes of one text at once, which branch off one recorded pass.

Up to the changed layer all these passes are the same, so each starts from the recorded residual
stream, as one row of a batch. In the last layer of a decoder only the output position is computed.
Ablating 144 heads costs less than half the arithmetic of 144 passes, and even less time, since a
batch uses the processor better than one row. Edits of the recorded pass are applied again in the
layers that run again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from explorer.catalog.attention_parts import site
from explorer.catalog.pass_budget import PassShape, SteppingTap, room_for
from explorer.inference.edited_pass import EditedPass
from explorer.inference.model_inputs import ids_of
from explorer.system.cooperative import Report
from models import Transformer
from models.block import Block, StackContext
from models.cache import LayerCache
from models.interventions import Edit
from models.masking import keep_of, padding_mask
from models.output_heads import LanguageModelHead
from models.stack import Stack
from models.tap import NO_TAP, Tap
from models.trace import RecordingTap, Trace
from models.transformer import evaluating


@dataclass(frozen=True, eq=False)
class ResumedStack:
    """One stack, resumed in the middle of a recorded pass.

    Only the positions from `start` on are computed: the keys and values of the earlier ones come
    from the recorded pass. Its `edits` are applied again.
    """

    trace: Trace
    edits: Sequence[Edit]
    name: str
    stack: Stack
    start: int
    keep: Tensor | None
    memory: Tensor | None
    memory_keep: Tensor | None

    def run(self, edit_at: Mapping[int, Edit], rows: int, output_position: int | None) -> Tensor:
        """The normed residual stream at the end, (layers × rows, t − start, d_model).

        At each layer of `edit_at`, `rows` new rows join those that branched off before. With
        `output_position`, the last layer computes this position alone, (…, 1, d_model).
        """
        first, last = min(edit_at), len(self.stack.blocks) - 1
        recorded = self._stream(first)
        around, x = self.around(recorded, self.start), recorded[:0]
        for layer in range(first, last + 1):
            position = output_position if layer == last else None
            streams = []
            if len(x) and position is None:
                tap = RecordingTap((), self.edits)
                streams.append(self.block(layer, x, around, tap, self.past(layer)))
            elif len(x) and position is not None:
                streams.append(self.last_block_at(x, position))
            if layer in edit_at:
                joins = self._stream(layer).expand(rows, -1, -1)
                tap = RecordingTap((), [*self.edits, edit_at[layer]])
                joined = self.block(layer, joins, around, tap, self.past(layer))
                streams.append(joined if position is None else self._at(joined, position))
            x = torch.cat(streams) if len(streams) > 1 else streams[0]
        normed: Tensor = self.stack.norm(x)
        return normed

    def _stream(self, layer: int) -> Tensor:
        """The recorded residual stream before a layer, (1, t − start, d_model)."""
        return self.trace[f"{self.name}.{layer}.resid_pre"][:, self.start :]

    def _at(self, x: Tensor, position: int) -> Tensor:
        return x[:, position - self.start : position - self.start + 1]

    def past(self, layer: int) -> dict[str, LayerCache]:
        """The recorded keys and values of the positions before `start`, for any number of rows."""
        if not self.start:
            return {"self_attn": LayerCache()}
        at = f"{self.name}.{layer}.self_attn"
        k, v = (self.trace[f"{at}.{name}"][:, :, : self.start] for name in "kv")
        return {"self_attn": LayerCache(k, v, self.start)}

    def around(self, x: Tensor, past: int) -> StackContext:
        """Masks and positions of these tokens, which follow `past` others, before any edit."""
        end, positions = past + x.shape[1], self.stack.positions
        all_here = self.trace[f"{self.name}.positions"]
        here = all_here[..., past:end]
        keep = None if self.keep is None else self.keep[:, :end]
        return StackContext(
            masks=self.stack.self_masks(x, past, keep),
            bias=positions.bias(here, all_here[..., :end]),
            rotate=positions.rotation(here),
            memory_mask=None if self.memory_keep is None else padding_mask(self.memory_keep),
        )

    def block(
        self, layer: int, x: Tensor, around: StackContext, tap: Tap, cache: dict[str, LayerCache]
    ) -> Tensor:
        if self.memory is not None:
            around = replace(around, memory=self.memory.expand(len(x), -1, -1))
        tap = SteppingTap(tap.at(self.name).at(str(layer)))
        out: Tensor = self.block_at(layer)(x, around, cache, tap)
        return out

    def block_at(self, layer: int) -> Block:
        block = self.stack.blocks[layer]
        assert isinstance(block, Block)
        return block

    def last_block_at(self, x: Tensor, position: int) -> Tensor:
        """The last block's output at one position, which attends to itself and those before it."""
        last = len(self.stack.blocks) - 1
        cache = self.past(last)
        if position > self.start:
            here = self.trace[f"{self.name}.positions"][..., self.start : position]
            rotate = self.stack.positions.rotation(here)
            block, before = self.block_at(last), x[:, : position - self.start]
            reads = block.self_residual.input_norm(before)
            cache["self_attn"].append(*block.self_attn.keys_and_values(reads, rotate))
        x = self._at(x, position)
        return self.block(last, x, self.around(x, position), NO_TAP, cache)


NUMBERS_HELD = 1 << 25
"""The most numbers of the widest value of a layer, in one batch: 128 MB."""
ROWS_TOGETHER = 48
"""The most passes of several layers in one batch; progress is reported after each batch."""
QUICK, MOST = 10**11, 5 * 10**12
"""Multiplications: two to five seconds on two cores, and two to four minutes; more is refused."""


@dataclass(frozen=True, eq=False)
class RecordedPass:
    """The pass of one text from which others branch off, and the output position.

    `trace` holds `CHEAP_SITES`; `inputs` are its ids (1, t), or source and target; `edits` were
    applied in it. No branch changes anything before `from_position`, such as the first position
    where two texts differ: a causal stack with one output position computes nothing before it.
    """

    trace: Trace
    inputs: Sequence[Tensor]
    position: int
    edits: Sequence[Edit] = ()
    from_position: int = 0

    @property
    def model(self) -> Transformer:
        model: Transformer = self.trace.model
        return model

    @property
    def longest(self) -> int:
        return max(ids.shape[1] for ids in self.inputs)

    def is_read_at_one(self, part: str) -> bool:
        """Whether branches in this part compute one position of the last layer.

        Edits need all positions, and so does every output head but a language model's.
        """
        is_causal, head = part.startswith("decoder."), self.model.head
        return is_causal and isinstance(head, LanguageModelHead) and not self.edits

    def start(self, part: str) -> int:
        """The first position that branches in this part compute."""
        return min(self.from_position, self.position) if self.is_read_at_one(part) else 0


def run_layers(
    base: RecordedPass,
    part: str,
    layers: Sequence[int],
    count: int,
    edit_of: Callable[[int, range], Edit],
) -> Iterator[Tensor]:
    """For each of these layers, in order, the logits (count, options) of passes from there.

    `edit_of(layer, rows)` is the edit of these rows, as in `run_branches`. Several layers share
    a batch where they fit.
    """
    together = max(1, min(ROWS_TOGETHER, _rows_at_once(base, part)) // count)
    for first in range(0, len(layers), together):
        group = layers[first : first + together]
        if len(group) == 1:
            yield run_branches(base, part, group[0], count, partial(edit_of, group[0]))
            continue
        edits = {layer: edit_of(layer, range(count)) for layer in group}
        yield from _run_batch(base, part, edits, count).split(count)


def run_branches(
    base: RecordedPass,
    part: str,
    layer: int,
    count: int,
    edit_of: Callable[[range], Edit],
    widest: int = 0,
    report: Report = lambda done: None,
) -> Tensor:
    """Logits (count, options) of `count` passes that branch off at this layer.

    `edit_of(rows)` is the edit of a batch with these rows, at a site of this layer, applied
    after those of the recorded pass; it gets the positions from `base.start(part)` on. `widest`
    is the number of values of a row in the layer, where the feed-forward layer needs fewer.
    `report` gets the share that is done.
    """
    at_once = _rows_at_once(base, part, widest)
    logits = []
    for first in range(0, count, at_once):
        rows = range(first, min(count, first + at_once))
        logits.append(_run_batch(base, part, {layer: edit_of(rows)}, len(rows)))
        report(rows.stop / count)
    return logits[0] if len(logits) == 1 else torch.cat(logits)  # a copy is not free


def _rows_at_once(base: RecordedPass, part: str, widest: int = 0) -> int:
    config = base.model.config
    tokens = base.trace[f"{site(part, 0)}.q"].shape[2] - base.start(part)
    numbers = max(widest, tokens * max(config.d_ff, 4 * config.d_model))
    all_weights = 2 * config.n_heads * base.longest**2
    if config.attention_cap is not None or config.sink_logit:  # held, never fused
        numbers = max(numbers, all_weights)
    of_weights = sum(edit.site.endswith(".weights") for edit in base.edits)
    width = max(config.d_model, config.n_heads * config.head_width)
    of_edits = of_weights * all_weights + len(base.edits) * base.longest * width
    return max(1, NUMBERS_HELD // (numbers + of_edits))


def multiplications(base: RecordedPass, part: str, layer: int) -> int:
    """About how many one branch at this layer needs, with every text as long as the longest."""
    config, name = base.model.config, part.split(".")[0]
    tokens = base.longest - base.start(part)
    stack: Stack = getattr(base.model, name)
    blocks = list(stack.blocks)[layer:]
    if config.kind == "encoder-decoder" and name == "encoder":
        blocks += base.model.last_stack.blocks
    weights = sum(weight.numel() for block in blocks for weight in block.parameters())
    mixed = 2 * len(blocks) * max(config.d_model, config.n_heads * config.head_width) * base.longest
    return tokens * (weights + mixed) + config.d_model * config.vocab_size


def _run_batch(base: RecordedPass, part: str, edit_at: Mapping[int, Edit], rows: int) -> Tensor:
    """Logits of passes that branch off at these layers, `rows` at each, in order."""
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
    is_read_at_one = base.is_read_at_one(part)
    read_at = slice(base.position, base.position + 1)
    start, stack = base.start(part), getattr(model, name)
    resumed = ResumedStack(base.trace, base.edits, name, stack, start, keep, memory, memory_keep)
    lengths = [ids.shape[1] for ids in base.inputs]
    shape = PassShape(lengths[0], sum(lengths[1:]), rows * len(edit_at), leaves="nothing")
    with room_for(config, shape), evaluating(model):
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


def recorded_pass(edited: EditedPass, position: int) -> RecordedPass:
    """The recorded pass that all the branches start from."""
    forward = edited.forward
    inputs = [ids_of([tokens]) for tokens in (forward.source, forward.target) if tokens]
    return RecordedPass(forward.trace, inputs, position, edited.core_edits)
