"""The blocks of one stack run again from the middle of a recorded pass, many rows at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from explorer.catalog.pass_budget import SteppingTap
from models.block import Block, StackContext
from models.cache import LayerCache
from models.interventions import Edit
from models.masking import padding_mask
from models.stack import Stack
from models.tap import NO_TAP, Tap
from models.trace import RecordingTap, Trace


@dataclass(frozen=True, eq=False)
class ResumedStack:
    """One stack, resumed in the middle of a recorded pass.

    Only the positions from `start` on are computed: the keys and values of those before it are
    the recorded ones. `edits` were made in the recorded pass, and are made again.
    """

    trace: Trace
    edits: Sequence[Edit]
    name: str
    stack: Stack
    start: int
    keep: Tensor | None
    memory: Tensor | None
    memory_keep: Tensor | None

    def run(self, edit_at: Mapping[int, Edit], rows: int, read: int | None) -> Tensor:
        """The normed residual stream at the end, (layers × rows, t − start, d_model).

        At each layer of `edit_at` so many rows join those that branched off before. Only the
        position `read` is computed in the last layer, (…, 1, d_model), where it is given.
        """
        first, last = min(edit_at), len(self.stack.blocks) - 1
        recorded = self._stream(first)
        around, x = self.around(recorded, self.start), recorded[:0]
        for layer in range(first, last + 1):
            position = read if layer == last else None
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
        """The recorded keys and values of the positions before `start`, for rows of any number."""
        if not self.start:
            return {"self_attn": LayerCache()}
        at = f"{self.name}.{layer}.self_attn"
        k, v = (self.trace[f"{at}.{each}"][:, :, : self.start] for each in "kv")
        return {"self_attn": LayerCache(k, v, self.start)}

    def around(self, x: Tensor, past: int) -> StackContext:
        """Masks and positions of these tokens, which follow so many, before any edit."""
        seen, positions = past + x.shape[1], self.stack.positions
        all_here = self.trace[f"{self.name}.positions"]
        here = all_here[..., past:seen]
        keep = None if self.keep is None else self.keep[:, :seen]
        return StackContext(
            masks=self.stack.self_masks(x, past, keep),
            bias=positions.bias(here, all_here[..., :seen]),
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
        found = self.stack.blocks[layer]
        assert isinstance(found, Block)
        return found

    def last_block_at(self, x: Tensor, position: int) -> Tensor:
        """The last block's output at one position, which sees itself and those before it."""
        last = len(self.stack.blocks) - 1
        cache = self.past(last)
        if position > self.start:
            here = self.trace[f"{self.name}.positions"][..., self.start : position]
            rotate = self.stack.positions.rotation(here)
            block, before = self.block_at(last), x[:, : position - self.start]
            reads = block.self_residual.input_norm(before)
            cache["self_attn"].append(*block.self_attn.keys_and_values(reads, rotate))
        one = self._at(x, position)
        return self.block(last, one, self.around(one, position), NO_TAP, cache)
