"""Something else in the place of what was read: how far the logits move, and the loss of a pass.

The vocabulary is scored at a few positions at a time.
"""

from __future__ import annotations

import torch
from torch import Tensor

from explorer.views.museum.case import Case
from models.losses import IGNORE, cross_entropy
from models.transformer import evaluating

AT_ONCE = 64
"""Positions whose whole vocabulary is scored together."""
FURTHER = 3
"""How far on in the vocabulary another token is taken from."""


def other_tokens(case: Case, ids: Tensor, where: slice) -> Tensor:
    """Other tokens in some places: the third id on, or the next after it where that is filler.

    With four words or fewer the next id: no token ever stands for itself, unless filler is
    the only other one.
    """
    words, pad = case.opened.config.vocab_size, case.opened.config.pad_id
    new = (ids[:, where] + (FURTHER if words > FURTHER + 1 else 1)) % words
    if pad is not None:
        new = new.where(new != pad, (pad + 1) % words)
    changed = ids.clone()
    changed[:, where] = new
    return changed


def moved_by(
    case: Case,
    ids: Tensor | None = None,
    target: Tensor | None = None,
    until: int | None = None,
    is_silenced: bool = False,
) -> float:
    """How far the logits before place `until` move when the model reads these instead.

    A classifier has one answer, to the whole text: `until` is nothing to it.
    """
    if case.model.config.head == "classifier":
        return float((case.logits(ids, target) - case.logits()).abs().max())
    before = case.stream(is_silenced=is_silenced)[:, :until]
    after = case.stream(ids, target, is_silenced)[:, :until]
    most = torch.zeros(())
    with evaluating(case.model):
        for start in range(0, before.shape[1], AT_ONCE):
            one, two = (case.model.read(x[:, start : start + AT_ONCE]) for x in (before, after))
            most = torch.maximum(most, (two - one).abs().max())
    return float(most)


def stream_moved_by(case: Case, ids: Tensor | None, target: Tensor | None, until: int) -> float:
    """How far the last stream before place `until` moves when the model reads these instead."""
    before, after = case.stream()[:, :until], case.stream(ids, target)[:, :until]
    return float((after - before).abs().max())


def loss_of(case: Case, final: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The loss of a last stream (1, t, d) and its gradient there."""
    nats, back = torch.zeros(()), torch.zeros_like(final)
    counted = (labels != IGNORE).sum()
    for start in range(0, final.shape[1], AT_ONCE):
        here = slice(start, start + AT_ONCE)
        x = final[:, here].detach().requires_grad_()
        some = int((labels[:, here] != IGNORE).sum())
        if some:
            part = cross_entropy(case.model.read(x), labels[:, here]) * some / counted
            (back[:, here],) = torch.autograd.grad(part, x)
            nats = nats + part.detach()
    return nats, back
