"""What a change of the pass does to what comes out: chances, divergence, loss, logits.

Read from the last stream of a recorded pass by the model's own last norm and head, so
before and after are read in the same way, at one position or at all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.answers import class_names, masks_in
from explorer.library import Opened
from explorer.reading import Reading
from explorer.text import Token

AT_ONCE = 64
"""Positions whose whole vocabulary is in memory together."""


@dataclass(frozen=True)
class Option:
    """One thing that may come out: a token or a class, before and after the change."""

    index: int
    label: str
    before: float
    after: float


@dataclass(frozen=True)
class Loss:
    """Nats per token of the text itself, and over how many tokens the mean goes."""

    before: float
    after: float
    tokens: int


def has_words(opened: Opened) -> bool:
    """Whether a word comes out at every position (no class, no bare stream)."""
    return opened.config.head in ("language-model", "masked-language-model")


def tokens_read(reading: Reading) -> tuple[Token, ...]:
    """What the stack reads that the head is read from."""
    return reading.target or reading.source


def first_place(opened: Opened, reading: Reading) -> int:
    """The position whose answer is shown first: the last, the mask, or the first word written."""
    tokens = tokens_read(reading)
    if opened.config.kind == "encoder-decoder":
        return 0
    if masks := masks_in(opened, tokens):
        return masks[0]
    return len(tokens) - 1 if opened.config.kind == "decoder" else 0


def stream(opened: Opened, reading: Reading) -> Tensor:
    """The last stream behind the last norm, (1, tokens, d_model)."""
    config = opened.config
    stack = "encoder" if config.kind == "encoder" else "decoder"
    layers = config.encoder_layers if stack == "encoder" else config.n_layers
    row = slice(reading.row, reading.row + 1)
    with torch.no_grad():
        normed: Tensor = opened.model.last_stack.norm(
            reading.trace[f"{stack}.{layers - 1}.resid_post"][row]
        )
    return normed


def logits(opened: Opened, reading: Reading, place: int) -> Tensor:
    """What the head gives at one position, (vocabulary,), or for the text, (classes,)."""
    if not has_words(opened):
        return reading.trace.output[reading.row]
    with torch.no_grad():
        read: Tensor = opened.model.read(stream(opened, reading)[:, place : place + 1])
    return read[0, 0]


def kl(before: Tensor, after: Tensor) -> Tensor:
    """KL(before ‖ after) = Σ p (ln p − ln q) in nats, of logits (…, options)."""
    p, q = (each.double().log_softmax(-1) for each in (before, after))
    return (p.exp() * (p - q)).sum(-1).clamp(min=0)


def options(opened: Opened, before: Tensor, after: Tensor, most: int = 6) -> list[Option]:
    """The likeliest before and the likeliest after, in one list, the likeliest before first."""
    p, q = (each.double().softmax(-1) for each in (before, after))
    most = min(most, len(p))
    found = dict.fromkeys([*p.topk(most).indices.tolist(), *q.topk(most).indices.tolist()])
    names = None if has_words(opened) else class_names(opened)
    return [
        Option(i, names[i] if names else opened.tokenizer.label(i), float(p[i]), float(q[i]))
        for i in sorted(found, key=lambda i: -float(p[i]))
    ]


def divergences(opened: Opened, before: Reading, after: Reading) -> Tensor:
    """KL in nats at every position, (tokens,). Cost grows with tokens × vocabulary in time."""
    pairs = zip(_logits(opened, before), _logits(opened, after), strict=True)
    return torch.cat([kl(mine, theirs) for mine, theirs in pairs])


def loss(opened: Opened, before: Reading, after: Reading) -> Loss | None:
    """Of a model that writes: −ln of the chance of each token it then reads (or wrote).

    None where there is no such model, or no token to foretell. A replaced token is foretold
    as the one that is read.
    """
    if opened.config.head != "language-model" or opened.config.kind == "encoder":
        return None
    found = []
    for reading in (before, after):
        heard = reading.written if opened.config.kind == "encoder-decoder" else reading.target[1:]
        ids = torch.tensor([token.id for token in heard])
        if not len(ids):
            return None
        found.append(-float(_told(opened, reading, ids).mean()))
    return Loss(found[0], found[1], len(ids))


def _told(opened: Opened, reading: Reading, ids: Tensor) -> Tensor:
    """The logarithm of the chance of each of these tokens, (tokens,)."""
    parts = zip(_logits(opened, reading), ids.split(AT_ONCE), strict=False)
    return torch.cat(
        [
            some[: len(heard)].double().log_softmax(-1).gather(-1, heard[:, None])[:, 0]
            for some, heard in parts
        ]
    )


def _logits(opened: Opened, reading: Reading) -> Iterator[Tensor]:
    """Logits of a few positions at a time, (positions, vocabulary)."""
    for some in stream(opened, reading).split(AT_ONCE, dim=1):
        with torch.no_grad():  # not around the yield: who waits there would go on without gradients
            found = opened.model.read(some)[0]
        yield found
