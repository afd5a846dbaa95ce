"""The models and texts of the truth test, and every number made again by plain torch.

Nothing of the app's own analysis is used here: only the core's pass, and arithmetic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from explorer.catalog.opened_model import opened_from
from models import load_checkpoint, trace
from models.interventions import Scale
from models.trace import Trace
from tests.source import ROOT

CHECKPOINTS = ROOT / "models" / "checkpoints"


@cache
def model_in(folder: Path) -> Any:
    return load_checkpoint(folder).model


@cache
def tokenizer_in(folder: Path) -> Any:
    return opened_from(folder, folder.name).tokenizer


def scores_in(seen: Trace, site: str, head: int) -> Tensor:
    """q·k / √d of every pair of one head, before any mask."""
    q, k = (seen[f"{site}.{name}"][0, head].double() for name in "qk")
    return q @ k.mT / math.sqrt(q.shape[-1])


def weights_in(seen: Trace, site: str, head: int) -> Tensor:
    """The softmax over the keys; a decoder's own ones lie not ahead of the query."""
    scores = scores_in(seen, site, head)
    if site.startswith("decoder") and site.endswith("self_attn"):
        ahead = torch.ones_like(scores).triu(1).bool()
        scores = scores.masked_fill(ahead, -math.inf)
    return scores.softmax(-1)


@dataclass(frozen=True)
class Case:
    """A model, the text it reads, the head that is looked at, and one pair of its places."""

    folder: Path
    text: str
    stack: str
    layer: int
    kind: str
    head: int
    query: int = 0
    key: int = 0
    edits: tuple[Scale, ...] = ()

    def at(self, layer: int, head: int) -> Case:
        """Another head of the same part."""
        return replace(self, layer=layer, head=head)

    def label(self, number: int) -> str:
        name: str = tokenizer_in(self.folder).label(number)
        return name

    def of_head(self, name: str) -> Tensor:
        """What the pass has at a site of the head."""
        return self.seen[f"{self.site}.{name}"][0, self.head].double()

    @property
    def address(self) -> str:
        part = "Cross" if self.kind == "cross_attn" else self.stack.capitalize()
        text = self.text.replace(" ", "+")
        head = f"layer={self.layer}&head={self.head}"
        return f"model={self.folder.name}&part={part}&{head}&text={text}"

    @property
    def site(self) -> str:
        return f"{self.stack}.{self.layer}.{self.kind}"

    @property
    def model(self) -> Any:
        return model_in(self.folder)

    @property
    def attention(self) -> Any:
        return getattr(self.model.last_stack.blocks[self.layer], self.kind)

    @cached_property
    def ids(self) -> Tensor:
        return torch.tensor([[token.id for token in tokenizer_in(self.folder).encode(self.text)]])

    @cached_property
    def written(self) -> Tensor:
        """The answer where one is written, with the token that begins it."""
        longest = self.model.config.max_len
        answer: Tensor = self.model.generate(self.ids, max_length=longest, greedy=True)
        return answer

    @cached_property
    def seen(self) -> Trace:
        writes = self.model.config.kind == "encoder-decoder"
        inputs = (self.ids, self.written[:, :-1]) if writes else (self.ids,)
        return trace(self.model, *inputs, edits=self.edits)

    @cached_property
    def scores(self) -> Tensor:
        return scores_in(self.seen, self.site, self.head)

    @cached_property
    def weights(self) -> Tensor:
        return weights_in(self.seen, self.site, self.head)

    @cached_property
    def logits(self) -> Tensor:
        return self.seen.output[0].double()

    @property
    def place(self) -> int:
        """Where the answer is read: at the end of what is gone on with, else at the beginning."""
        return -1 if self.model.config.kind == "decoder" else 0

    @property
    def answer(self) -> Tensor:
        """The logits of the next token, of the first that is written, or of the classes."""
        return self.logits[self.place] if self.logits.dim() > 1 else self.logits

    @property
    def chances(self) -> Tensor:
        return self.answer.softmax(-1)

    @property
    def out(self) -> Any:
        """The matrix that makes logits of the stream, and its bias."""
        return getattr(self.model.head, "out", self.model.head)

    def stream(self, layer: int) -> Tensor:
        """The stream where the answer is read, before this layer."""
        site = f"{layer - 1}.resid_post" if layer else "0.resid_pre"
        return self.seen[f"{self.stack}.{site}"][0, self.place].double()

    def after(self, layer: int) -> Tensor:
        """The logits that the last norm and the head read off the stream before this layer."""
        normed = self._normed(self.stream(layer), self.stream(layer))
        normed = normed + self.model.last_stack.norm.bias.detach()
        return normed @ self.out.weight.detach().double().mT + self.out.bias.detach()

    def heads_in_logit(self, option: int, kind: str) -> float:
        """What all heads of a kind give one logit: their part, normed as the whole stream was."""
        found, blocks = 0.0, self.model.last_stack.blocks
        for layer, block in enumerate(blocks):
            given = self.seen[f"{self.stack}.{layer}.{kind}.head_out"][0, :, self.place].double()
            written = getattr(block, kind).o_proj.weight.detach().double() @ given.flatten()
            word = self.out.weight[option].detach().double()
            found += float(self._normed(written, self.stream(len(blocks))) @ word)
        return found

    def _normed(self, part: Tensor, whole: Tensor) -> Tensor:
        norm = self.model.last_stack.norm
        deviation = (whole.var(correction=0) + norm.eps).sqrt()
        return (part - part.mean()) / deviation * norm.weight.detach()


SHAKESPEARE = Case(
    CHECKPOINTS / "shakespeare", "To be, or not to be", "decoder", 1, "self_attn", 2, query=7, key=6
)
TRANSLATION = Case(
    CHECKPOINTS / "translation",
    "the black cat sees the white house",
    "decoder",
    0,
    "cross_attn",
    1,
    query=1,
    key=2,
)
NEGATION = Case(
    CHECKPOINTS / "negation", "the film is not good", "encoder", 0, "self_attn", 1, query=1, key=2
)
HEADS = [(layer, head) for layer in range(2) for head in range(4)]
"""Of the model of Shakespeare."""


def parameters(module: nn.Module) -> int:
    return sum(each.numel() for each in module.parameters())


def sinusoid(position: int, dimension: int, width: int) -> float:
    """Interleaved: sine on even dimensions, cosine on odd ones, one frequency a pair."""
    angle = position / 10_000 ** (2 * (dimension // 2) / width)
    return math.cos(angle) if dimension % 2 else math.sin(angle)


def doubled(position: int, dimension: int, width: int) -> float:
    """sin(p / 10000^(2i/d)), cos(p / 10000^(2(i + 1)/d)) for i = 0, 2, 4, …"""
    angle = position / 10_000 ** (2 * dimension / width)
    return math.cos(angle) if dimension % 2 else math.sin(angle)


def kl(p: Tensor, q: Tensor) -> float:
    """In nats, of logits."""
    return float((p.softmax(-1) * (p.log_softmax(-1) - q.log_softmax(-1))).sum())


def apart(one: Tensor, other: Tensor) -> float:
    """The mean Jensen–Shannon divergence of the rows, in bits."""

    def entropy(p: Tensor) -> Tensor:
        return torch.special.entr(p).sum(-1)

    found = entropy((one + other) / 2) - (entropy(one) + entropy(other)) / 2
    return float(found.mean()) / math.log(2)
