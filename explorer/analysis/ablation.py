"""Many ablations or patches of heads at once, as branches of one recorded pass.

Up to the changed layer all these passes are the same, so each starts from the recorded residual
stream, as one row of a batch. In the last layer of a decoder only the position that is read is
computed. Ablating 144 heads costs less than half the arithmetic of 144 passes, and less in time,
since a batch fills the processor better than one row. Edits of the recorded pass are applied
again in the layers that run again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from explorer.analysis.batch_edits import AblateHeads, PatchHeads
from explorer.analysis.resumed_stack import ResumedStack
from explorer.catalog.attention_parts import site
from explorer.catalog.pass_budget import passing
from explorer.catalog.pass_size import PassShape
from explorer.inference.edited_pass import EditedPass
from explorer.inference.model_inputs import ids_of
from models import Transformer
from models.interventions import Edit
from models.masking import keep_of
from models.output_heads import LanguageModelHead
from models.stack import Stack
from models.trace import RecordingTap, Trace
from models.transformer import evaluating

NUMBERS_HELD = 1 << 25
"""Of the widest value of a layer, in one batch: 128 MB."""
ROWS_TOGETHER = 48
"""So many passes share a batch where it has room; progress is reported after each batch."""
QUICK, MOST = 10**11, 5 * 10**12
"""Multiplications: two to five seconds on two cores, and two to four minutes; more is refused."""


@dataclass(frozen=True, eq=False)
class RecordedPass:
    """The pass of one text from which others branch off, and the position that is read.

    `trace` holds `CHEAP_SITES`; `inputs` are its ids (1, t), or source and target; `edits`
    were applied in it. No branch changes anything before `from_position`, where two texts differ
    first, say: in a causal stack that is read at one position, nothing before it is computed.
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
        return max(each.shape[1] for each in self.inputs)

    def is_read_at_one(self, part: str) -> bool:
        """Whether branches in this part compute one position of the last layer.

        Edits name values of all positions, and so does every head but a language model's.
        """
        is_causal, head = part.startswith("decoder."), self.model.head
        return is_causal and isinstance(head, LanguageModelHead) and not self.edits

    def start(self, part: str) -> int:
        """The first position that branches in this part compute."""
        return min(self.from_position, self.position) if self.is_read_at_one(part) else 0


def ablate_every_head(
    base: RecordedPass, part: str, layers: int, patched: Callable[[int], Tensor] | None = None
) -> Iterator[Tensor]:
    """For each layer the logits (heads, options); row i is of a pass without head i.

    `patched(layer)` gives other head outputs (heads, t, d_head) to put in place of zero.
    """
    start = base.start(part)

    def edit_of(layer: int, heads: range) -> Edit:
        at, which = f"{site(part, layer)}.head_out", tuple(heads)
        if patched is None:
            return AblateHeads(at, which)
        return PatchHeads(at, which, patched(layer)[:, start:])

    return run_layers(base, part, range(layers), base.model.config.n_heads, edit_of)


def run_layers(
    base: RecordedPass,
    part: str,
    layers: Sequence[int],
    count: int,
    edit_of: Callable[[int, range], Edit],
) -> Iterator[Tensor]:
    """For each of these layers, in order, the logits (count, options) of passes from there.

    `edit_of(layer, rows)` is the edit of these rows, as in `run_branches`. Several layers share a
    batch where it has room.
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
    report: Callable[[float], None] = lambda done: None,
) -> Tensor:
    """Logits (count, options) of `count` passes that branch off at this layer.

    `edit_of(rows)` is the edit of a batch with these rows, at a site of this layer, applied
    after those of the recorded pass; it meets the positions from `base.start(part)` on. `widest`
    is how many numbers a row holds in the layer, where that is more than the feed-forward needs.
    `report` gets the share that is done.
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
    tokens = base.trace[f"{site(part, 0)}.q"].shape[2] - base.start(part)
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
    config, name = base.model.config, part.split(".")[0]
    tokens = base.longest - base.start(part)
    stack: Stack = getattr(base.model, name)
    blocks = list(stack.blocks)[layer:]
    if config.kind == "encoder-decoder" and name == "encoder":
        blocks += base.model.last_stack.blocks
    weights = sum(each.numel() for block in blocks for each in block.parameters())
    mixed = 2 * len(blocks) * max(config.d_model, config.n_heads * config.head_width) * base.longest
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
    is_read_at_one = base.is_read_at_one(part)
    read_at = slice(base.position, base.position + 1)
    start, stack = base.start(part), getattr(model, name)
    resumed = ResumedStack(base.trace, base.edits, name, stack, start, keep, memory, memory_keep)
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


def recorded_pass(edited: EditedPass, position: int) -> RecordedPass:
    """The base that all the passes branch off from."""
    forward = edited.forward
    inputs = [ids_of([tokens]) for tokens in (forward.source, forward.target) if tokens]
    return RecordedPass(forward.trace, inputs, position, edited.core_edits)
