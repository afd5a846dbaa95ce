"""The values of every stage as the pass had them, and how exactly they follow from each other.

What the trace records is taken from it; what lies between is computed by the model's own
modules and functions. Shapes are without the batch, and of one head where every head has its
own: t tokens, n keys, w width of one head, d width of the model.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from explorer.analysis.forward_pass.equation import Equation
from explorer.analysis.forward_pass.kinds import KINDS
from explorer.analysis.forward_pass.stage_kind import ALL, Inputs, Some, Stage
from explorer.analysis.forward_pass.stages import stages_of
from explorer.analysis.residual_writes import positions_of
from explorer.catalog.attention_parts import site
from explorer.catalog.pass_budget import SteppingTap, passing
from explorer.catalog.pass_size import PassShape
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.model_inputs import ids_of
from models.block import StackContext
from models.trace import RecordingTap, Trace, trace
from models.transformer import evaluating

DERIVED = ("scores", "bias", "weights")
"""Kinds that a pass derives for the head that is asked for, so that all need not be kept."""
CHEAP_TAILS = ("*.head_out", "*.out", "resid_mid", "resid_cross", "resid_post", "mlp.hidden")
"""The sites of a block that grow with tokens alone."""
MOST_LOGITS = 1 << 20
"""Positions × vocabulary; where there are more, they are computed for the chosen token alone."""

Record = Callable[[tuple[str, ...]], Trace]


def recorded(forward: ForwardPass, sites: tuple[str, ...]) -> Trace:
    """The same pass once more, with these sites recorded. Cost of a pass."""
    texts = (forward.source, forward.target) if forward.written else (forward.tokens,)
    return trace(
        forward.trace.model,
        *[ids_of([text]) for text in texts],
        segments=segment_row(forward) if forward.config.n_segments else None,
        read_at=slice(-1, None),
        sites=sites,
    )


def recorded_block(forward: ForwardPass, stack: str, layer: int) -> Trace:
    """One block of the pass once more, on what entered it there, with its cheap sites recorded.

    The names are those of the whole pass. Cost of one block.
    """
    passed, row, at = forward.trace, forward.row, f"{stack}.{layer}"
    part: Any = getattr(passed.model, stack)
    block, here = part.blocks[layer], positions_of(forward, stack)
    memory = memory_mask = None
    if block.cross_attn is not None:
        memory = passed["memory"][row : row + 1]
        memory_mask = forward.mask(f"{stack}.cross_attn", layer)[None, None, :1]
    shared = StackContext(
        masks={block.window: forward.mask(f"{stack}.self_attn", layer)[None, None]},
        bias=part.positions.bias(here, here),
        rotate=part.positions.rotation(here),
        memory=memory,
        memory_mask=memory_mask,
    )
    tap = RecordingTap(tuple(f"{at}.{tail}" for tail in CHEAP_TAILS))
    x = passed[f"{at}.resid_pre"][row : row + 1]
    shape = PassShape(x.shape[1], x.shape[1], read=0, leaves="nothing")
    with passing(forward.config, shape), evaluating(passed.model):
        out = block(x, shared, None, SteppingTap(tap.at(at)))
    return Trace(passed.model, tap.values, out)


def segment_row(forward: ForwardPass) -> Tensor:
    """(1, t): which text of a pair each token of the typed text belongs to."""
    most = forward.config.n_segments - 1
    return torch.tensor([[min(token.segment, most) for token in forward.tokens]])


def sites_with(stage: Stage) -> tuple[str, ...]:
    """What is recorded together with a stage: the cheap sites of its block, or around them."""
    if stage.layer is None:
        return tuple(f"{stage.stack}.{n}" for n in ("embed", "pos_embed", "segment_embed", "final"))
    return tuple(f"{stage.stack}.{stage.layer}.{tail}" for tail in CHEAP_TAILS)


class PassValues:
    """The values of the stages of one pass: `values["decoder.0.resid_mid"]`, each made once.

    `head` is whose values are shown where every head has its own, and `token` the position
    whose logits are computed where all would be too many.
    """

    def __init__(self, forward: ForwardPass, head: int, token: int, record: Record) -> None:
        self.forward, self.head, self.token, self.record = forward, head, token, record
        self.config, self.model = forward.config, forward.trace.model
        self.stages = {stage.name: stage for stage in stages_of(forward.config)}
        self.known: dict[str, Tensor] = {}

    def __getitem__(self, name: str) -> Tensor:
        if name not in self.known:
            with torch.no_grad():
                self.known[name] = self._made(self.stages[name])
        return self.known[name]

    def _made(self, stage: Stage) -> Tensor:
        if stage.kind in DERIVED:
            derive = getattr(self.forward, stage.kind)
            made: Tensor = derive(stage.part, stage.layer, self.head)
            return made
        if stage.kind == "concat":
            heads = self.record(sites_with(stage))[f"{site(stage.part, stage.layer or 0)}.head_out"]
            return heads[0].transpose(0, 1).flatten(1)
        if not stage.site or stage.kind == "logits":  # the pass may have read one position only
            return KINDS[stage.kind].compute(Inputs(self, stage))
        if stage.site in self.forward.trace:
            value = self.forward.trace[stage.site][self.forward.row]
        else:
            value = self.record(sites_with(stage))[stage.site][0]
        if stage.per_text:
            return value[None]
        return value[self.head_of(len(value))] if stage.per_head else value

    def head_of(self, count: int) -> int:
        """The place of the shown head among `count`: its own, or that of the group it shares."""
        return self.head * count // self.config.n_heads

    def ids(self, stack: str) -> Tensor:
        return ids_of([self.forward.source if stack == "encoder" else self.forward.target])[0]

    def segments(self, stack: str) -> Tensor:
        """(t,): which text of a pair each token belongs to, the first unless a lone encoder."""
        is_alone = self.config.kind == "encoder"
        return segment_row(self.forward)[0] if is_alone else torch.zeros_like(self.ids(stack))

    def mask(self, stage: Stage) -> Tensor:
        """(q, k): which keys every query may attend to."""
        return self.forward.mask(stage.part, stage.layer or 0)

    def rows(self, name: str) -> list[int]:
        """The positions that the rows of a value stand for."""
        stage = self.stages[name]
        if stage.per_text:
            return [0]
        if stage.kind == "probabilities":
            return self.rows(stage.reads[0])
        count = len(self.forward.source if stage.stack == "encoder" else self.forward.target)
        if stage.kind == "logits":
            is_large = count * self.config.vocab_size > MOST_LOGITS
            return [self.token] if is_large else list(range(count))
        return list(range(len(self[name])))

    def equation(self, stage: Stage, row: int, column: int) -> Equation | None:
        """One number of a stage, from the numbers of the stages that it reads."""
        inputs = Inputs(self, stage, slice(row, row + 1), ALL, torch.float64, column)
        with torch.no_grad():
            return KINDS[stage.kind].equation(inputs)

    def relative_error(self, stage: Stage, rows: slice = ALL, columns: Some = ALL) -> float:
        """How far these rows are from the same recomputed in float64 from the stages they read.

        By the model's own modules and functions. The largest absolute difference, as a share
        of the largest absolute value; NaN where no value is finite, so that there is nothing
        to compare. Of logits only these columns are recomputed.
        """
        value = self[stage.name][rows].detach()
        value = (value[:, columns] if stage.kind == "logits" else value).double()
        inputs = Inputs(self, stage, rows, columns, torch.float64)
        with torch.no_grad():
            return relative_error(value, KINDS[stage.kind].compute(inputs))


def relative_error(value: Tensor, recomputed: Tensor) -> float:
    if torch.equal(value, recomputed):
        return 0.0
    finite = value.isfinite()
    if not torch.equal(finite, recomputed.isfinite()):
        return math.inf
    if not finite.any():
        return math.nan
    largest = float(value[finite].abs().max())
    return float((value - recomputed)[finite].abs().max()) / (largest or 1.0)
