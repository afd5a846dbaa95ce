"""What a change of the pass does to what comes out: chances, divergence, loss, logits.

Read from the last stream of a recorded pass by the model's own last norm and head, so
before and after are read in the same way, at one position or at all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.inference.forward_pass import ForwardPass
from explorer.text import Token
from models import TransformerConfig

AT_ONCE = 64
"""Positions whose whole vocabulary is in memory together."""


@dataclass(frozen=True)
class Option:
    """One thing that may come out, a token or a class: its chance before and after."""

    index: int
    before: float
    after: float


@dataclass(frozen=True)
class Loss:
    """Nats per token of the text itself, and over how many tokens the mean goes."""

    before: float
    after: float
    tokens: int


@dataclass(frozen=True, eq=False)
class OverText:
    """KL in nats at every position, (tokens,); the loss where the model foretells tokens."""

    kl: Tensor
    loss: Loss | None


def has_words(config: TransformerConfig) -> bool:
    """Whether a word comes out at every position (no class, no bare stream)."""
    return config.head in ("language-model", "masked-language-model")


def tokens_read(forward: ForwardPass) -> tuple[Token, ...]:
    """What the stack reads that the head is read from."""
    return forward.target or forward.source


def last_streams(config: TransformerConfig) -> tuple[str, int]:
    """The name of the stack that the head reads, and how many layers it has."""
    if config.kind == "encoder":
        return "encoder", config.encoder_layers
    return "decoder", config.n_layers


def stream(forward: ForwardPass) -> Tensor:
    """The last stream behind the last norm, (1, tokens, d_model)."""
    stack, layers = last_streams(forward.config)
    row = slice(forward.row, forward.row + 1)
    with torch.no_grad():
        normed: Tensor = forward.trace.model.last_stack.norm(
            forward.trace[f"{stack}.{layers - 1}.resid_post"][row]
        )
    return normed


def logits(forward: ForwardPass, place: int) -> Tensor:
    """What the head gives at one position, (vocabulary,), or for the text, (classes,)."""
    if not has_words(forward.config):
        return forward.trace.output[forward.row]
    return _read(forward, stream(forward)[:, place : place + 1])[0]


def kl(before: Tensor, after: Tensor) -> Tensor:
    """KL(before ‖ after) = Σ p (ln p − ln q) in nats, of logits (…, options)."""
    p, q = (each.double().log_softmax(-1) for each in (before, after))
    return _divergence(p, q)


def _divergence(p: Tensor, q: Tensor) -> Tensor:
    """The same of the logarithms of chances."""
    return (p.exp() * (p - q)).sum(-1).clamp(min=0)


def options(before: Tensor, after: Tensor, most: int = 6) -> list[Option]:
    """The likeliest before and the likeliest after, in one list, the likeliest before first."""
    p, q = (each.double().softmax(-1) for each in (before, after))
    most = min(most, len(p))
    found = dict.fromkeys([*p.topk(most).indices.tolist(), *q.topk(most).indices.tolist()])
    return [Option(i, float(p[i]), float(q[i])) for i in sorted(found, key=lambda i: -float(p[i]))]


def over_text(before: ForwardPass, after: ForwardPass) -> OverText:
    """KL and loss over all positions. Cost grows with tokens × vocabulary in time.

    The loss is −ln of the chance of each token that the model then reads (or wrote); None
    where it foretells none. A replaced token is foretold as the one that is read.
    """
    both = before, after
    streams = [stream(each) for each in both]
    foretold = [_foretold(each) for each in both]
    divergences: list[Tensor] = []
    told: tuple[list[Tensor], list[Tensor]] = [], []
    for first in range(0, streams[0].shape[1], AT_ONCE):
        some = slice(first, first + AT_ONCE)
        chances = [
            _read(each, whole[:, some]).double().log_softmax(-1)
            for each, whole in zip(both, streams, strict=True)
        ]
        divergences.append(_divergence(*chances))
        for mine, ids, found in zip(chances, foretold, told, strict=True):
            heard = ids[some]
            found.append(mine[: len(heard)].gather(-1, heard[:, None])[:, 0])
    loss = None
    if tokens := len(foretold[0]):
        old, new = (-float(torch.cat(found).mean()) for found in told)
        loss = Loss(old, new, tokens)
    return OverText(torch.cat(divergences), loss)


def _foretold(forward: ForwardPass) -> Tensor:
    """The token that each position is to foretell, for as many as have one, (tokens,)."""
    config = forward.config
    if config.head != "language-model" or config.kind == "encoder":
        return torch.zeros(0, dtype=torch.long)
    writes = config.kind == "encoder-decoder"
    heard = forward.written if writes else forward.target[1:]
    return torch.tensor([token.id for token in heard], dtype=torch.long)


def _read(forward: ForwardPass, some: Tensor) -> Tensor:
    """Logits of a stream behind the last norm, (positions, vocabulary)."""
    with torch.no_grad():
        found: Tensor = forward.trace.model.read(some)[0]
    return found
