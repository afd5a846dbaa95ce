"""The stages of a forward pass in the order they run, from the modules of the model.

A stage is a value that the trace records (its `site`), or one that a module or function of
the model computes between two such values.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import torch
from torch import nn

from explorer.analysis.forward_pass.kinds import KINDS
from explorer.analysis.forward_pass.stage_kind import Shapes, Stage
from models import Transformer, TransformerConfig
from models.classifier import ClassifierHead
from models.output_heads import LanguageModelHead
from models.position_biases import AlibiPositions, RelativePositions
from models.positional import LearnedPositions, PositionalEncoding
from models.rotary import RotaryPositions


@lru_cache(maxsize=64)
def stages_of(config: TransformerConfig) -> tuple[Stage, ...]:
    """Every stage of a model of this config, in the order it runs."""
    with torch.device("meta"):  # the modules alone, without their numbers
        model = Transformer(config)
    found: list[Stage] = []
    for stack in config.stacks:
        memory = found[-1].name if found else ""
        found += _StackStages(model, stack, memory).stages
    return tuple(found)


def _is_there(module: nn.Module | None) -> bool:
    return module is not None and not isinstance(module, nn.Identity)


class _StackStages:
    """The stages of one stack.

    `place` and `owner` are what names and modules begin with, `stream` is the latest stage
    that is the residual stream.
    """

    def __init__(self, model: Transformer, name: str, memory: str) -> None:
        self.config, self.name, self.memory = model.config, name, memory
        self.stack: Any = getattr(model, name)
        self.stages: list[Stage] = []
        self.place, self.owner, self.section, self.branch = f"{name}.", f"{name}.", "Input", ""
        self.stream, self.layer = "", None  # type: str, int | None
        self._embedding()
        for layer, block in enumerate(self.stack.blocks):
            self.layer, self.section = layer, f"Layer {layer}"
            self.place, self.owner = f"{name}.{layer}.", f"{name}.blocks.{layer}."
            self._block(block)
        self.place = self.owner = f"{name}."
        self.layer, self.section, self.branch = None, "Output", ""
        if _is_there(self.stack.norm):
            self._put("final", "final norm", module="norm")
        if self.stack is model.last_stack:
            self.place = self.owner = ""
            self._head(model.head)

    def _put(
        self,
        tail: str,
        kind: str,
        *reads: str,
        module: str = "",
        title: str = "",
        shapes: Shapes = (),
        site: str | None = None,
    ) -> str:
        """One more stage, which reads the residual stream unless told otherwise; its name."""
        name, row = self.place + tail, KINDS[kind]
        owner = f"{self.name}." if module == "positions" else self.owner
        stage = Stage(
            name=name,
            title=title or row.title,
            kind=kind,
            stack=self.name,
            section=self.section,
            reads=reads or ((self.stream,) if self.stream else ()),
            shapes=shapes or row.shapes,
            site=(name if row.recorded else "") if site is None else site,
            module=module and owner + module,
            layer=self.layer,
            branch=self.branch,
        )
        self.stages.append(stage)
        if stage.is_stream:
            self.stream = name
        return name

    def _embedding(self) -> None:
        stack = self.stack
        tokens = self._put("tokens", "tokens")
        added = [self._put("embed", "embedding", tokens, module="embedding")]
        if isinstance(stack.positions, PositionalEncoding | LearnedPositions):
            added.append(self._put("pos_embed", "positions", tokens, module="positions"))
        if stack.segments is not None:
            added.append(self._put("segment_embed", "segments", tokens, module="segments"))
        start, normed = f"{self.name}.0.resid_pre", _is_there(stack.embedding_norm)
        if len(added) > 1:
            self._put("sum", "sum", *added, site="" if normed else start)
        if normed:
            title = "Embedding norm"
            self._put("sum_norm", "stream norm", module="embedding_norm", title=title, site=start)

    def _block(self, block: Any) -> None:
        before = self.stream
        normed = self._attention(block, "self_attn", "self_residual", "resid_mid")
        if block.cross_attn is not None:
            self._attention(block, "cross_attn", "cross_residual", "resid_cross")
        if block.mlp is not None:
            self._feed_forward(block, before, normed)

    def _attention(self, block: Any, branch: str, residual: str, after: str) -> str:
        """One attention until the residual stream after it; the name of what it reads."""
        self.branch, is_cross = branch, branch == "cross_attn"
        attention = getattr(block, branch)
        positions = None if is_cross else self.stack.positions
        reads = self._input_norm(residual, self.stream)
        keys = self.memory if is_cross else reads
        q = self._projected(attention, positions, "q", "Queries", reads)
        k = self._projected(attention, positions, "k", "Keys", keys)
        v = self._projected(attention, positions, "v", "Values", keys)
        products = self._put(f"{branch}.products", "products", q, k)
        scores = [self._put(f"{branch}.scores", "scores", products)]
        if isinstance(positions, RelativePositions | AlibiPositions):
            tokens = f"{self.name}.tokens"
            scores.append(self._put(f"{branch}.bias", "bias", tokens, module="positions"))
        is_causal = self.stack.causal and not is_cross
        is_masked = is_causal or self.config.windows or self.config.pad_id is not None
        if len(scores) > 1 or is_masked:
            scores = [self._put(f"{branch}.masked", "masked", *scores)]
        weights = self._put(f"{branch}.weights", "weights", *scores)
        heads = self._put(f"{branch}.head_out", "head out", weights, v)
        joined = self._put(f"{branch}.concat", "concat", heads)
        module = f"{branch}.o_proj"
        out = self._put(f"{branch}.out", "output projection", joined, module=module)
        self._add(residual, out, after)
        return reads

    def _projected(
        self, attention: Any, positions: Any, letter: str, title: str, reads: str
    ) -> str:
        """Queries, keys or values: projected and split into heads, then normed and rotated."""
        is_q, is_v = letter == "q", letter == "v"
        heads = "heads" if is_q or attention.n_kv_heads == attention.n_heads else "kv heads"
        along = "source tokens" if not is_q and self.branch == "cross_attn" else "tokens"
        split: Shapes = (("batch", heads, along, "d_head"),)
        wide = ("batch", along, f"{heads}·d_head"), ("batch", along, heads, "d_head")
        steps = [(f"{letter}_proj", "projected", title, f"{self.branch}.{letter}_proj")]
        if not is_v and _is_there(getattr(attention, f"{letter}_norm")):
            module = f"{self.branch}.{letter}_norm"
            steps.append((f"{letter}_norm", "head norm", f"{title}, normalized", module))
        if not is_v and isinstance(positions, RotaryPositions):
            steps.append((letter, "rotated", f"{title}, rotated", "positions"))
        for tail, kind, title, module in steps:
            is_last = kind == steps[-1][1]  # which is what the trace records
            tail = f"{self.branch}.{letter if is_last else tail}"
            shapes = (*wide, *split) if kind == "projected" else split
            site = self.place + tail if is_last else ""
            reads = self._put(
                tail, kind, reads, module=module, title=title, shapes=shapes, site=site
            )
        return reads

    def _feed_forward(self, block: Any, before: str, normed: str) -> None:
        self.branch = "mlp"
        shares_norm = block.mlp_residual.norm is block.self_residual.norm
        stream = before if block.parallel else self.stream
        reads = normed if shares_norm else self._input_norm("mlp_residual", stream)
        is_gated = block.mlp.gate_proj is not None
        steps = ["gate", "up"] if is_gated else ["up"]
        made = [self._put(f"mlp.{each}", each, reads, module=f"mlp.{each}_proj") for each in steps]
        title = "Gated activation" if is_gated else ""
        hidden = self._put("mlp.hidden", "activation", *made, title=title)
        out = self._put("mlp.out", "down", hidden, module="mlp.down_proj")
        self._add("mlp_residual", out, "resid_post")

    def _input_norm(self, residual: str, stream: str) -> str:
        """What a sub-layer reads: the residual stream, or the norm of it."""
        if self.config.norm_position == "post":
            return stream
        return self._put(f"{self.branch}.norm", "norm", stream, module=f"{residual}.norm")

    def _add(self, residual: str, out: str, after: str) -> None:
        """What a sub-layer wrote is added to the residual stream, with the norms around it."""
        position, branch = self.config.norm_position, self.branch
        if position == "sandwich":
            module = f"{residual}.out_norm"
            out = self._put(f"{branch}.out_norm", "output norm", out, module=module)
        if position != "post":
            self._put(after, "add", self.stream, out)
            return
        self._put(f"{branch}.add", "add", self.stream, out, site="")
        self._put(after, "stream norm", module=f"{residual}.norm")

    def _head(self, head: nn.Module | None) -> None:
        if isinstance(head, ClassifierHead):
            read = self._put("head.pooled", "pooled")
            if head.hidden is not None:
                read = self._put("head.hidden", "class hidden", read)
            logits = self._put("logits", "class logits", read)
        elif isinstance(head, LanguageModelHead):
            read = self.stream
            if _is_there(head.transform):
                read = self._put("head.transform", "transform", read, module="head.transform")
            logits = self._put("logits", "logits", read)
        else:
            return
        self._put("probabilities", "probabilities", logits, shapes=self.stages[-1].shapes)


def sizes(
    config: TransformerConfig, batch: int, tokens: int, source: int, keys: int
) -> Mapping[str, int]:
    """What every symbol of a shape stands for; `keys` is how many keys a query has."""
    return {
        "batch": batch,
        "tokens": tokens,
        "queries": tokens,
        "keys": keys,
        "source tokens": source,
        "heads": config.n_heads,
        "kv heads": config.kv_heads,
        "d_head": config.head_width,
        "heads·d_head": config.n_heads * config.head_width,
        "kv heads·d_head": config.kv_heads * config.head_width,
        "d_model": config.d_model,
        "d_ff": config.d_ff,
        "d_classifier": config.d_classifier or 0,
        "vocabulary": config.vocab_size,
        "classes": config.n_classes,
    }
