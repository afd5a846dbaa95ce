"""The fixed model and text of the truth test, and every number made again by plain torch.

Nothing of the app's own analysis is used here: only the core's pass, and arithmetic.
"""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from explorer.library import opened_from
from models import load_checkpoint, trace
from models.interventions import Scale
from models.trace import Trace
from tests.source import ROOT

FOLDER = ROOT / "models" / "checkpoints" / "shakespeare"
TEXT = "To be, or not to be"
LAYER, HEAD = 1, 2
ADDRESS = f"model=shakespeare&layer={LAYER}&head={HEAD}&text={TEXT.replace(' ', '+')}"
SITE = f"decoder.{LAYER}.self_attn"


@cache
def tokenizer() -> Any:
    return opened_from(FOLDER, "shakespeare").tokenizer


@cache
def ids() -> Tensor:
    tokens = tokenizer().encode(TEXT)
    return torch.tensor([[token.id for token in tokens]])


def labels() -> list[str]:
    return [token.label for token in tokenizer().encode(TEXT)]


def label(number: int) -> str:
    name: str = tokenizer().label(number)
    return name


@cache
def model() -> Any:
    return load_checkpoint(FOLDER).model


@cache
def seen(*edits: Scale) -> Trace:
    return trace(model(), ids(), edits=edits)


def scores_of(passed: Trace, site: str = SITE, head: int = HEAD) -> Tensor:
    """q·k / √d of every pair of one head, before any mask."""
    q, k = (passed[f"{site}.{name}"][0, head].double() for name in "qk")
    return q @ k.mT / math.sqrt(q.shape[-1])


def looking_back(scores: Tensor) -> Tensor:
    """The softmax over the keys up to the query."""
    ahead = torch.ones_like(scores).triu(1).bool()
    return scores.masked_fill(ahead, -math.inf).softmax(-1)


def scores(layer: int = LAYER, head: int = HEAD) -> Tensor:
    return scores_of(seen(), f"decoder.{layer}.self_attn", head)


def weights(layer: int = LAYER, head: int = HEAD) -> Tensor:
    return looking_back(scores(layer, head))


def logits(*edits: Scale) -> Tensor:
    return seen(*edits).output[0].double()


def chances() -> Tensor:
    return logits()[-1].softmax(-1)


def after(layer: int) -> Tensor:
    """The logits that the last norm and the head read off the stream before this layer."""
    sites = [f"decoder.{n}.resid_post" for n in range(model().config.n_layers)]
    stream = seen()[["decoder.0.resid_pre", *sites][layer]][0, -1].double()
    norm, head = model().last_stack.norm, model().head
    centred = stream - stream.mean()
    normed = centred / (centred.square().mean() + norm.eps).sqrt()
    normed = normed * norm.weight.detach() + norm.bias.detach()
    logits: Tensor = normed @ head.weight.detach().double().mT + head.bias.detach()
    return logits


def heads_in_logit(option: int) -> float:
    """What all heads together give one logit: their part of the stream, normed as the whole was."""
    found = 0.0
    last = seen()["decoder.1.resid_post"][0, -1].double()
    norm = model().last_stack.norm
    deviation = (last.var(correction=0) + norm.eps).sqrt()
    word = model().head.weight[option].detach().double()
    for layer, block in enumerate(model().last_stack.blocks):
        given = seen()[f"decoder.{layer}.self_attn.head_out"][0, :, -1].double()
        written = block.self_attn.o_proj.weight.detach().double() @ given.flatten()
        found += float(((written - written.mean()) / deviation * norm.weight.detach()) @ word)
    return found


def sinusoid(position: int, dimension: int, width: int) -> float:
    """Interleaved: sine on even dimensions, cosine on odd ones, one frequency a pair."""
    angle = position / 10_000 ** (2 * (dimension // 2) / width)
    return math.cos(angle) if dimension % 2 else math.sin(angle)


def kl(p: Tensor, q: Tensor) -> float:
    """In nats, of logits."""
    return float((p.softmax(-1) * (p.log_softmax(-1) - q.log_softmax(-1))).sum())


def loss(given: Tensor) -> float:
    """The mean of −ln p of every token that the text goes on with."""
    heard = ids()[0, 1:]
    return -float(given[:-1].log_softmax(-1).gather(-1, heard[:, None]).mean())


def apart(one: Tensor, other: Tensor) -> float:
    """The mean Jensen–Shannon divergence of the rows, in bits."""

    def entropy(p: Tensor) -> Tensor:
        return torch.special.entr(p).sum(-1)

    found = entropy((one + other) / 2) - (entropy(one) + entropy(other)) / 2
    return float(found.mean()) / math.log(2)


def reversing(folder: Path, word: str, head: int) -> float:
    """How much weight a head of cross-attention has where the word is read backwards."""
    model = load_checkpoint(folder).model
    tokenizer = opened_from(folder, folder.name).tokenizer
    source = torch.tensor([[token.id for token in tokenizer.encode(word)]])
    written = model.generate(source, max_length=len(word) + 1, greedy=True)
    passed = trace(model, source, written[:, :-1])
    found = scores_of(passed, "decoder.0.cross_attn", head).softmax(-1)
    return float(torch.stack([found[i, len(word) - 1 - i] for i in range(len(word))]).mean())
