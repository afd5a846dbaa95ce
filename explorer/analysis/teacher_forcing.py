"""Teacher forcing beside free running: the same model fed the target, or its own words.

Source of teacher forcing: A Learning Algorithm for Continually Running Fully Recurrent
Neural Networks (Williams and Zipser 1989).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from models.cache import KeyValueCache
from models.masking import keep_of
from models.sampling import allowed, allowed_rows
from models.transformer import Transformer, evaluating


@dataclass(frozen=True, eq=False)
class Forced:
    """Step by step: what was fed, what should come, what came.

    `fed` and `right` are the target and the target one step on (the shifted row); `said`
    what the model holds likeliest when it is fed the target, `chances` and `nats` (steps,)
    what it gives the right token then, `fed_free` and `free` the same rows of its own
    writing, which ends early where it ends the text.
    """

    fed: tuple[int, ...]
    right: tuple[int, ...]
    said: tuple[int, ...]
    chances: Tensor
    nats: Tensor
    fed_free: tuple[int, ...]
    free: tuple[int, ...]

    @property
    def departs(self) -> int | None:
        """The first step at which its own writing is not the target; None where it is all of it."""
        steps = range(len(self.right))
        return next((at for at in steps if self.free[at : at + 1] != self.right[at : at + 1]), None)


def forced(model: Transformer, source: Tensor | None, target: Tensor, given: int) -> Forced:
    """A target (tokens,) of which the first `given` stand there from the start.

    `source` (1, s) is what the encoder reads, None for a decoder alone. One pass with the
    target, and one step after another for its own writing. ValueError if nothing is left
    to write.
    """
    if not 1 <= given < len(target):
        raise ValueError(
            f"Of {len(target)} tokens 1 to {len(target) - 1} may be given, not {given}."
        )
    memory = memory_keep = None
    config = model.config
    with evaluating(model):
        if source is not None:
            memory_keep = keep_of(source, config.pad_id)
            memory = model.encode(source, memory_keep)
        fed = target[None, :-1]
        keep = torch.ones_like(fed, dtype=torch.bool)
        asked = slice(given - 1, None)
        logits = model.decode(fed, memory, memory_keep, keep, read_at=asked)[0].float()
        logits = allowed_rows(logits, config, first=given == 1)
        cache, unread = KeyValueCache.empty(config.n_layers), target[None, :given]
        free: list[int] = []
        for _ in range(len(target) - given):
            last = model.decode(unread, memory, memory_keep, None, cache, slice(-1, None))[:, -1]
            best = int(allowed(last, config, first=given == 1 and not free).argmax())
            free.append(best)
            if best in config.generation.eos_ids:
                break
            unread = torch.tensor([[best]])
    right = target[given:]
    nats = -logits.log_softmax(-1).gather(-1, right[:, None])[:, 0]
    begun = int(target[given - 1])
    return Forced(
        fed=tuple(target[given - 1 : -1].tolist()),
        right=tuple(right.tolist()),
        said=tuple(logits.argmax(-1).tolist()),
        chances=(-nats).exp(),
        nats=nats,
        fed_free=(begun, *free[:-1]),
        free=tuple(free),
    )
