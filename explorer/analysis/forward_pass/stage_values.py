"""The values of every stage, as the pass had them.

What the trace shows is taken from it; what lies between is made by the model's own module.
Shapes are without the batch, and of one head where every head has its own: t tokens,
n keys, w width of one head, d width of the model.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor

from explorer.analysis.forward_pass.pass_stages import stages_of
from explorer.analysis.forward_pass.stage_line import Stage
from explorer.catalog.attention_parts import site
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.model_inputs import ids_of
from models import trace
from models.attention import attention_scores
from models.heads import POOLINGS
from models.masking import keep_of
from models.trace import Trace

MOST_LOGITS = 1 << 20
"""Positions × vocabulary; where there are more, they are made for the chosen token alone."""

Record = Callable[[tuple[str, ...]], Trace]


def recorded(forward: ForwardPass, sites: tuple[str, ...]) -> Trace:
    """The pass of a reading once more, with these sites. Cost of a pass."""
    model, config = forward.trace.model, forward.config
    texts = (forward.source, forward.target) if forward.written else (forward.tokens,)
    segments = None
    if config.n_segments:
        most = config.n_segments - 1
        segments = torch.tensor([[min(token.segment, most) for token in forward.tokens]])
    inputs = [ids_of([text]) for text in texts]
    return trace(model, *inputs, segments=segments, read_at=slice(-1, None), sites=sites)


def sites_with(stage: Stage) -> tuple[str, ...]:
    """What is recorded together with a stage: the cheap sites of its block, or around them."""
    if stage.layer is None:
        return tuple(f"{stage.stack}.{n}" for n in ("embed", "pos_embed", "segment_embed", "final"))
    tails = ("*.head_out", "*.out", "resid_mid", "resid_cross", "resid_post", "mlp.hidden")
    return tuple(f"{stage.stack}.{stage.layer}.{tail}" for tail in tails)


class Walk:
    """The values of the stages of one pass: `walk["decoder.0.resid_mid"]`, each made once.

    `head` is whose values are shown where every head has its own, and `token` the position
    whose logits are made where all would be too many.
    """

    def __init__(self, forward: ForwardPass, head: int, token: int, record: Record) -> None:
        self.forward, self.head, self.token, self.record = forward, head, token, record
        self.config, self.model = forward.config, forward.trace.model
        self.stages = {stage.name: stage for stage in stages_of(forward.config)}
        self.known: dict[str, Tensor] = {}

    def __getitem__(self, name: str) -> Tensor:
        if name not in self.known:
            stage = self.stages[name]
            with torch.no_grad():
                make = MAKE.get(stage.kind)
                self.known[name] = make(self, stage) if make else self.shown(stage)
        return self.known[name]

    def shown(self, stage: Stage) -> Tensor:
        """What the trace shows there, or the model's own module makes of what the stage reads."""
        if not stage.site:
            made: Tensor = self.module(stage)(self[stage.reads[0]])
            return made
        if stage.site in self.forward.trace:
            value = self.forward.trace[stage.site][self.forward.row]
        else:
            value = self.record(sites_with(stage))[stage.site][0]
        return value[self.head_of(stage, len(value))] if stage.per_head else value

    def module(self, stage: Stage) -> Any:
        return attrgetter(stage.module)(self.model)

    def head_of(self, stage: Stage, count: int) -> int:
        """The head's own, or that of the group that shares it."""
        return self.head * count // self.config.n_heads

    def attention(self, stage: Stage) -> Any:
        return getattr(getattr(self.model, stage.stack).blocks[stage.layer], stage.branch)

    def ids(self, stack: str) -> Tensor:
        return ids_of([self.forward.source if stack == "encoder" else self.forward.target])[0]

    def places(self, stack: str) -> Tensor:
        """The positions of the tokens, as the model counts them."""
        found = self.forward.trace[f"{stack}.positions"]
        return found[self.forward.row] if found.dim() == 2 else found

    def segments(self, stack: str) -> Tensor:
        """Which text of a pair every token is of; only an encoder alone is told."""
        if self.config.kind != "encoder":
            return torch.zeros_like(self.ids(stack))
        most = max(self.config.n_segments - 1, 0)
        return torch.tensor([min(token.segment, most) for token in self.forward.tokens])

    def bias(self, stage: Stage) -> Tensor | None:
        assert stage.layer is not None
        return self.forward.bias(stage.part, stage.layer, self.head)

    def mask(self, stage: Stage) -> Tensor:
        """Which keys every query may look at."""
        assert stage.layer is not None
        return self.forward.mask(stage.part, stage.layer)

    def rows(self, name: str) -> list[int]:
        """The positions that the rows of a value stand for."""
        stage = self.stages[name]
        if stage.kind in ("pooled", "class hidden", "class logits"):
            return [0]
        if stage.kind == "probabilities":
            return self.rows(stage.reads[0])
        count = len(self.forward.source if stage.stack == "encoder" else self.forward.target)
        if stage.kind == "logits" and count * self.config.vocab_size > MOST_LOGITS:
            return [self.token]
        return list(range(len(self[name])))


def _weights(walk: Walk, stage: Stage) -> Tensor:
    assert stage.layer is not None
    return walk.forward.weights(stage.part, stage.layer, walk.head)


def _scores(walk: Walk, stage: Stage) -> Tensor:
    assert stage.layer is not None
    return walk.forward.scores(stage.part, stage.layer, walk.head)


def _products(walk: Walk, stage: Stage) -> Tensor:
    q, k = (walk[name][None, None] for name in stage.reads)
    return attention_scores(q, k, 1.0)[0, 0]


def _masked(walk: Walk, stage: Stage) -> Tensor:
    """−∞ where nobody may look, which the core writes as the lowest finite number."""
    scores = walk[stage.reads[0]]
    bias = walk.bias(stage)
    scores = scores if bias is None else scores + bias.to(scores.dtype)
    return scores.masked_fill(~walk.mask(stage), -torch.inf)


def _projected(walk: Walk, stage: Stage) -> Tensor:
    if stage.site:
        return walk.shown(stage)
    heads = walk.attention(stage).split(walk.module(stage)(walk[stage.reads[0]])[None])[0]
    one: Tensor = heads[walk.head_of(stage, len(heads))]
    return one


def _bias(walk: Walk, stage: Stage) -> Tensor:
    found = walk.bias(stage)
    assert found is not None
    return found


def _concat(walk: Walk, stage: Stage) -> Tensor:
    heads = walk.record(sites_with(stage))[f"{site(stage.part, stage.layer or 0)}.head_out"][0]
    return heads.transpose(0, 1).flatten(1)


def _sum(walk: Walk, stage: Stage) -> Tensor:
    if stage.site:
        return walk.shown(stage)
    return torch.stack([walk[name] for name in stage.reads]).sum(0)


def _pooled(walk: Walk, stage: Stage) -> Tensor:
    pad = walk.config.pad_id
    keep = None if pad is None else keep_of(walk.ids(stage.stack)[None], pad)
    return POOLINGS[walk.config.pooling](walk[stage.reads[0]][None], keep)


def _class_hidden(walk: Walk, stage: Stage) -> Tensor:
    head: Any = walk.model.head
    made: Tensor = head.activation(head.hidden(walk[stage.reads[0]]))
    return made


def _class_logits(walk: Walk, stage: Stage) -> Tensor:
    return walk.forward.trace["logits"][walk.forward.row][None]


def _transform(walk: Walk, stage: Stage) -> Tensor:
    head: Any = walk.model.head
    made: Tensor = head.transform(walk[stage.reads[0]][None])[0]
    return made


def _logits(walk: Walk, stage: Stage) -> Tensor:
    """By the model's own head: the pass itself may have read one position only."""
    head: Any = walk.model.head
    final = walk[walk.stages["head.transform"].reads[0] if _transforms(walk) else stage.reads[0]]
    rows = (
        walk.rows(stage.name)
        if len(final) * walk.config.vocab_size > MOST_LOGITS
        else slice(0, None)
    )
    made: Tensor = head(final[rows][None], walk.model.last_stack.embedding.weight)[0]
    return made


def _transforms(walk: Walk) -> bool:
    return "head.transform" in walk.stages


MAKE: dict[str, Callable[[Walk, Stage], Tensor]] = {
    "tokens": lambda walk, stage: walk.ids(stage.stack),
    "projected": _projected,
    "products": _products,
    "scores": _scores,
    "bias": _bias,
    "masked": _masked,
    "weights": _weights,
    "concat": _concat,
    "begin": _sum,
    "add": _sum,
    "pooled": _pooled,
    "class hidden": _class_hidden,
    "class logits": _class_logits,
    "transform": _transform,
    "logits": _logits,
    "probabilities": lambda walk, stage: walk[stage.reads[0]].softmax(-1),
}
"""Those that are not simply shown by the trace, or made by one module of what they read."""
