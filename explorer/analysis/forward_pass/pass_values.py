"""The values of every stage of a pass, and the error of each against float64.

Recorded values come from the trace. To check a stage, the model runs once more in float64, and a
tap replaces each value before the stage by that of the pass. Shapes are without the batch, and of
one head where every head has its own: t tokens, n keys, w width of one head, d width of the model.
"""

import math
from collections.abc import Callable
from copy import deepcopy
from functools import lru_cache
from itertools import takewhile
from operator import attrgetter
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only

from explorer.analysis.forward_pass.equation import Equation
from explorer.analysis.forward_pass.kinds import KINDS
from explorer.analysis.forward_pass.stage import Stage, StageCell
from explorer.analysis.forward_pass.stages import stages_of
from explorer.analysis.residual_writes import head_reads, positions_of
from explorer.catalog.attention_parts import site
from explorer.catalog.pass_budget import PassShape, SteppingTap, room_for
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.model_inputs import ids_of
from models import TransformerConfig
from models.attention import attention_scores
from models.block import StackContext
from models.interventions import Replace
from models.masking import keep_of
from models.output_heads import LanguageModelHead
from models.positional import PositionalEncoding, sinusoids
from models.tap import Tap
from models.trace import RecordingTap, Trace, trace
from models.transformer import EVERYWHERE, evaluating

Some = slice | list[int]
ALL = slice(None)
DERIVED = ("scores", "bias", "weights")
"""Kinds that a pass derives for one head on request, so that it need not keep all heads."""
COMPUTED = ("masked", "transform", "logits")
"""Kinds that are shown at more positions, or as −∞ where the model has its lowest number."""
MOST_LOGITS = 1 << 20
"""Positions × vocabulary; beyond this, logits are computed for the chosen token alone."""

Record = Callable[[tuple[str, ...]], Trace]


def record_pass(forward: ForwardPass, sites: tuple[str, ...]) -> Trace:
    """The same pass once more, with these sites recorded. Cost of a pass."""
    texts = (forward.source, forward.target) if forward.output_tokens else (forward.tokens,)
    return trace(
        forward.trace.model,
        *[ids_of([text]) for text in texts],
        segments=segment_row(forward) if forward.config.n_segments else None,
        read_at=slice(-1, None),
        sites=sites,
    )


def record_block(forward: ForwardPass, stack: str, layer: int) -> Trace:
    """One block of the pass once more, on the same input, with its cheap sites recorded.

    A value that an intervention has changed is that of the pass.

    The names are those of the whole pass. Cost of one block.
    """
    at, row = f"{stack}.{layer}", slice(forward.row, forward.row + 1)
    changed = [site for site in forward.trace.values if forward.edits and site.startswith(f"{at}.")]
    edits = [Replace(site, forward.trace[site]) for site in changed if site != f"{at}.resid_pre"]
    tap = RecordingTap(cheap_sites(forward.config, stack, layer), edits)
    x = forward.trace[f"{at}.resid_pre"][row]
    memory = forward.trace["memory"][row] if forward.output_tokens else None
    with room_for(forward.config, PassShape(x.shape[1], x.shape[1], read=0, leaves="nothing")):
        out = run_block(forward, stack, layer, x, memory, SteppingTap(tap.at(at)))
    return Trace(forward.trace.model, tap.values, out, EVERYWHERE)


def run_block(
    forward: ForwardPass,
    stack: str,
    layer: int,
    x: Tensor,
    memory: Tensor | None,
    tap: Tap,
    rows: slice = ALL,
) -> Tensor:
    """One block over these rows of the stream, (1, rows, d), with the masks of the pass."""
    part: Any = getattr(forward.trace.model, stack)
    block, here = part.blocks[layer], positions_of(forward, stack)
    memory_mask = None
    if block.cross_attn is not None:
        memory_mask = forward.mask(f"{stack}.cross_attn", layer)[None, None, rows]
    shared = StackContext(
        masks={block.window: forward.mask(f"{stack}.self_attn", layer)[None, None, rows]},
        bias=part.positions.bias(here[rows], here),
        rotate=part.positions.rotation(here[rows]),
        memory=memory if block.cross_attn is not None else None,
        memory_mask=memory_mask,
    )
    with evaluating(forward.trace.model):
        out: Tensor = block(x, shared, None, tap)
    return out


def segment_row(forward: ForwardPass) -> Tensor:
    """(1, t): which text of a pair each token of the typed text belongs to."""
    most = forward.config.n_segments - 1
    return torch.tensor([[min(token.segment, most) for token in forward.tokens]])


@lru_cache(maxsize=256)
def cheap_sites(config: TransformerConfig, stack: str, layer: int | None) -> tuple[str, ...]:
    """The sites of one block, or those outside the blocks, that grow with tokens alone."""
    return tuple(
        stage.site
        for stage in stages_of(config)
        if (stage.stack, stage.layer) == (stack, layer)
        and stage.site
        and not stage.is_square
        and stage.kind not in COMPUTED
    )


class PassValues:
    """The values of the stages of one pass: `values["decoder.0.resid_mid"]`, each computed once.

    `head` is the head that is shown where every head has its own value, and `token` the position
    whose logits are computed where those of all positions would be too many.
    """

    def __init__(self, forward: ForwardPass, head: int, token: int, record: Record) -> None:
        self.forward, self.head, self.token, self.record = forward, head, token, record
        self.config, self.model = forward.config, forward.trace.model
        self.stages = {stage.name: stage for stage in stages_of(forward.config)}
        self.by_name: dict[str, Tensor] = {}

    def __getitem__(self, name: str) -> Tensor:
        if name not in self.by_name:
            with torch.no_grad():
                self.by_name[name] = self._value(self.stages[name])
        return self.by_name[name]

    def _value(self, stage: Stage) -> Tensor:
        if stage.kind in DERIVED:
            derive = getattr(self.forward, stage.kind)
            derived: Tensor = derive(stage.part, stage.layer, self.head)
            return derived
        if stage.kind == "concat":
            return self._recorded_value(self.stages[stage.reads[0]]).transpose(0, 1).flatten(1)
        if not stage.site or stage.kind in COMPUTED:
            return self._computed_value(stage, None)
        value = self._recorded_value(stage)
        if stage.per_text:
            return value[None]
        return value[self.head_of(len(value))] if stage.per_head else value

    def _recorded_value(self, stage: Stage) -> Tensor:
        for name in stage.aliases:
            if name in self.forward.trace:
                return self.forward.trace[name][self.forward.row]
        return self.record(cheap_sites(self.config, stage.stack, stage.layer))[stage.site][0]

    def _computed_value(
        self, stage: Stage, dtype: torch.dtype | None, rows: slice = ALL, columns: Some = ALL
    ) -> Tensor:
        """A value that no tap gives in the form that is drawn, from the stages that it reads."""

        def source(at: int) -> Tensor:
            value = self[stage.reads[at]].detach()
            return value if dtype is None else value.to(dtype)

        match stage.kind:
            case "tokens":
                return self.ids(stage.stack)[rows]
            case "products":
                q, k = source(0)[rows], source(1)
                return attention_scores(q[None, None], k[None, None], 1.0)[0, 0]
            case "masked":
                scores = source(0)[rows]
                if len(stage.reads) > 1:
                    scores = scores + source(1)[rows].to(scores.dtype)
                return scores.masked_fill(~self.mask(stage)[rows], -torch.inf)
            case "transform":
                transformed: Tensor = self.model.head.transform(source(0)[rows][None])[0]
                return transformed
            case "probabilities":
                return self.config.scores(source(0)[rows])
        x = source(0)[self.rows(stage.name)][rows]
        head, words = self.model.head, self.model.last_stack.embedding.weight[columns].to(x.dtype)
        assert isinstance(head, LanguageModelHead)
        some: dict[int, Any] = {id(head.transform): nn.Identity()}  # which is a stage of its own
        for weight in (head.weight, head.bias):
            if weight is not None:
                some[id(weight)] = nn.Parameter(weight[columns].to(x.dtype), requires_grad=False)
        logits: Tensor = deepcopy(head, some)(x[None], words)[0]
        return logits

    def head_of(self, count: int) -> int:
        """The index of the head among `count` heads, which may be shared by groups."""
        return self.head * count // self.config.n_heads

    def ids(self, stack: str) -> Tensor:
        return ids_of([self.forward.source if stack == "encoder" else self.forward.target])[0]

    def segments(self, stack: str) -> Tensor:
        """(t,): the text of the pair that each token belongs to; 0 except in a lone encoder."""
        is_alone = self.config.kind == "encoder" and self.config.n_segments
        return segment_row(self.forward)[0] if is_alone else torch.zeros_like(self.ids(stack))

    def mask(self, stage: Stage) -> Tensor:
        """(q, k): the keys that every query may attend to."""
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
        cell = StageCell(
            stage,
            row,
            column,
            self.model,
            self.head,
            self.__getitem__,
            self.rows(stage.name),
            self.ids(stage.stack),
            self.segments(stage.stack),
            positions_of(self.forward, stage.stack),
            self.mask(stage) if stage.part else None,
        )
        with torch.no_grad():
            return KINDS[stage.kind].equation(cell)

    def relative_error(self, stage: Stage, rows: slice = ALL, columns: Some = ALL) -> float:
        """The error of these rows against float64, computed from the stages that they read.

        The largest absolute difference, as a share of the largest absolute value; NaN where no
        value is finite. Of logits, only these columns are recomputed.
        """
        value = self[stage.name][rows].detach()
        value = (value[:, columns] if stage.kind == "logits" else value).double()
        with torch.no_grad():
            return relative_error(value, self._recomputed_value(stage, rows, columns))

    def _recomputed_value(self, stage: Stage, rows: slice, columns: Some) -> Tensor:
        if stage.kind == "concat":
            places = torch.arange(len(self[stage.reads[0]]))[rows]
            at = site(stage.part, stage.layer or 0)
            return torch.cat(list(head_reads(self.forward, at, places, torch.float64).heads), -1)
        if not stage.site or stage.kind in ("masked", "logits"):
            return self._computed_value(stage, torch.float64, rows, columns)
        for name, near in self.stages.items():  # the values of the pass, before float64 begins
            is_own = (near.stack, near.layer) == (stage.stack, stage.layer)
            if near.kind not in ("logits", "probabilities") and (is_own or name in stage.reads):
                _ = self[name]
        module = attrgetter(stage.module)(self.model) if stage.module else nn.Identity()
        with _InDouble(module):
            if stage.layer is None:
                return self._around_blocks(stage, module, rows)
            tap = _CheckingTap(self, stage, rows, f"{stage.stack}.{stage.layer}.")
            x = self[self._stream_before(stage.stack, stage.layer)][rows].double()[None]
            memory = None
            if self.forward.output_tokens:
                memory = self[self._stream_before("decoder")][rows].double()[None]
            run_block(self.forward, stage.stack, stage.layer, x, memory, tap, rows)
            return tap.results[0]

    def _stream_before(self, stack: str, layer: int | None = None) -> str:
        """The name of the residual stream that enters this layer, or the one before a stack."""
        before = takewhile(
            lambda s: (s.stack, s.layer if layer is not None else None) != (stack, layer),
            self.stages.values(),
        )
        return [stage.name for stage in before if stage.is_stream][-1]

    def _around_blocks(self, stage: Stage, module: Any, rows: slice) -> Tensor:
        """A stage in front of the first block or behind the last."""
        here = positions_of(self.forward, stage.stack)[rows]
        scale = getattr(self.model, stage.stack).embedding_scale
        whole = [self[name].detach().double() for name in stage.reads]
        value: Tensor
        match stage.kind:
            case "embedding":
                value = module(whole[0][rows].long()) * scale
            case "segments":
                value = module(self.segments(stage.stack)[rows])
            case "positions" if isinstance(module, PositionalEncoding):  # a table in float32
                value = sinusoids(here, module.pe.shape[-1], module.pairs)
            case "positions":
                value = module.embed(here)
            case "sum":
                value = torch.stack(whole).sum(0)[rows]
            case "pooled" | "class hidden" | "class logits":
                tap = _CheckingTap(self, stage, ALL, "")
                final = self[self.stages["head.pooled"].reads[0]].double()
                keep = keep_of(self.ids(stage.stack)[None], self.config.pad_id)
                self.model.read(final[None], keep, tap=tap)
                value = tap.results[0]
            case _:
                value = module(whole[0][rows][None])[0]
        return value


class _CheckingTap(RecordingTap):
    """Collects what the model computes for one stage, of these rows, in float64.

    It replaces every other value by that of the pass: after the keys and values, which all rows
    attend to, by that of one head alone.
    """

    def __init__(self, values: PassValues, stage: Stage, rows: slice, prefix: str) -> None:
        super().__init__()
        self.of_pass, self.stage, self.rows, self._prefix = values, stage, rows, prefix
        self.results: list[Tensor] = []
        self.by_site = {
            name: near
            for near in values.stages.values()
            if (near.stack, near.layer) == (stage.stack, stage.layer)
            for name in near.aliases
        }

    def wants(self, name: str) -> bool:
        return not name.endswith("_input")

    def __call__(self, name: str, value: Tensor) -> Tensor:
        stage = self.by_site.get(self._prefix + name)
        if stage is None or stage.kind == "masked":
            return value
        if stage is self.stage:
            own = value[0]
            if stage.per_head:
                own = own[self.of_pass.head_of(len(own))]
            self.results.append(own[None] if stage.per_text else own)
        if stage.kind == "head out":
            return self.of_pass._recorded_value(stage)[None, :, self.rows].double()
        original = self.of_pass[stage.name].detach()
        original = (original if name in ("k", "v") else original[self.rows]).double()
        if stage.per_text:
            return original
        return original[None, None] if stage.per_head else original[None]


class _InDouble(TorchFunctionMode):
    """Computes everything in float64, except with the weights of other modules than this one.

    Those stay in their own precision, so that no more than one weight is copied: nobody reads
    what they compute.
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.own = {id(weight) for weight in module.parameters()}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is F.embedding:  # rows of a table, which is not copied
            return func(*args, **kwargs).double()
        if func not in (F.linear, F.layer_norm, F.rms_norm):
            return func(*args, **kwargs)
        weights = [w for w in (*args, *kwargs.values()) if isinstance(w, nn.Parameter)]
        dtype = next((w.dtype for w in weights if id(w) not in self.own), torch.float64)
        args, kwargs = tree_map_only(Tensor, lambda tensor: tensor.to(dtype), (args, kwargs))
        return func(*args, **kwargs).double()


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
