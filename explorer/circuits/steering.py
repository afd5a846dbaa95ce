"""What a direction does to the answer of a question, over strengths.

Source: Steering Llama 2 via Contrastive Activation Addition (Panickssery et al. 2024), section 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.analysis.ablation import RecordedPass, multiplications, run_branches
from explorer.catalog.opened_model import Opened
from explorer.circuits.text_pairs import Question, TokenPair
from explorer.inference.core_edits import steering_direction
from explorer.inference.forward_pass import run_text
from explorer.inference.model_inputs import ids_of
from explorer.interventions.edits import Steer
from models.interventions import Add, Edit

UPWARDS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
STRENGTHS = (*(-each for each in reversed(UPWARDS)), 0.0, *UPWARDS)
"""Closer where most happens."""


@dataclass(frozen=True, eq=False)
class SteeringCurves:
    """The metric of the clean and of the corrupted texts, each (pairs, strengths)."""

    strengths: tuple[float, ...]
    clean: Tensor
    corrupted: Tensor

    @property
    def bytes(self) -> int:
        return self.clean.nbytes + self.corrupted.nbytes


def steering_of(
    question: Question, part: str, layer: int, head: int | None, strength: float
) -> Steer:
    """Towards the clean texts and away from the corrupted, or the head's output on the first."""
    pairs = [pair.texts for pair in question.pairs]
    if head is not None:
        return Steer(part, layer, head, strength, (pairs[0].clean,))
    part = f"{part.split('.')[0]}.self_attn"
    texts = (text for pair in pairs for text in (pair.clean, pair.corrupted))
    return Steer(part, layer, None, strength, tuple(texts))


def steering_cost(opened: Opened, question: Question, steer: Steer) -> int:
    """About how many multiplications the curves take."""
    bases = _bases(opened, question)
    return len(STRENGTHS) * sum(multiplications(each, own(steer), steer.layer) for each in bases)


def steering_curves(
    opened: Opened,
    question: Question,
    steer: Steer,
    strengths: Sequence[float] = STRENGTHS,
    report: Callable[[float], None] = lambda done: None,
) -> SteeringCurves:
    """A row of a batch for every strength; the layers up to that of the direction run once.

    NotApplicableError where there is no direction. The strength of `steer` does not matter.
    """
    direction = steering_direction(opened, steer)
    site = f"{steer.part.split('.')[0]}.{steer.layer}.resid_post"
    factors = torch.tensor(strengths, dtype=direction.dtype)

    def edit_of(rows: range) -> Edit:
        return Add(site, factors[rows.start : rows.stop, None, None] * direction)

    bases = list(_bases(opened, question))
    found = []
    for done, (base, pair) in enumerate(zip(bases, twice(question.pairs), strict=True)):
        logits = run_branches(base, own(steer), steer.layer, len(strengths), edit_of)
        found.append(pair.outcome(logits))
        report((done + 1) / len(bases))
    clean, corrupted = torch.stack(found[::2]), torch.stack(found[1::2])
    return SteeringCurves(tuple(strengths), clean, corrupted)


def own(steer: Steer) -> str:
    """The self-attention of the stack that is steered."""
    return f"{steer.part.split('.')[0]}.self_attn"


def twice(pairs: Sequence[TokenPair]) -> Iterator[TokenPair]:
    """Each pair for its clean and for its corrupted text."""
    return (pair for pair in pairs for _ in range(2))


def _bases(opened: Opened, question: Question) -> Iterator[RecordedPass]:
    """The recorded passes of the clean and the corrupted text of each pair, in turn."""
    for pair in question.pairs:
        for text in (pair.texts.clean, pair.texts.corrupted):
            forward = run_text(opened, text)
            inputs = [ids_of([tokens]) for tokens in (forward.source, forward.target) if tokens]
            yield RecordedPass(forward.trace, inputs, pair.place)
