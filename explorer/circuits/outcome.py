"""What is measured of an output: one number of the logits of two texts, which tells them apart."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

LOGIT_DIFFERENCE, PROBABILITY = "Logit difference", "Probability"
KL, LOSS, CLASS_SCORE = "KL divergence", "Loss", "Class score"

Outcome = Callable[[Tensor], Tensor]
"""From logits (b, options) at the position that is read to one number a row, (b,)."""


def outcome_of(name: str, answer: int, against: int, clean: Tensor) -> Outcome:
    """The metric of this name; `clean` (options,) are the logits of the clean text.

    KL is that of the clean text's distribution to the other's, so it is 0 for the clean text.
    """
    if name == LOGIT_DIFFERENCE:
        return lambda logits: logits[:, answer] - logits[:, against]
    if name == PROBABILITY:
        return lambda logits: logits.softmax(-1)[:, answer]
    if name == LOSS:
        return lambda logits: -logits.log_softmax(-1)[:, answer]
    if name == CLASS_SCORE:
        return lambda logits: logits[:, answer]
    before = clean.log_softmax(-1)
    return lambda logits: (before.exp() * (before - logits.log_softmax(-1))).sum(-1)
