"""When a head forms: its scores over the steps of a training, and the step at which they rise."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

NOTICEABLE = 0.3
"""The lowest final score of a head that counts as formed."""
SHARE = 0.5


@dataclass(frozen=True)
class Formation:
    """The largest final score of a head, and the step at which it formed.

    `scores` are those of every step. `step` is the first from which on the score stays at half
    of its final value or above; None where it does so at all steps, or at the last one alone.
    """

    layer: int
    head: int
    score: str
    scores: tuple[tuple[int, float], ...]
    step: int | None

    @property
    def final(self) -> float:
        return self.scores[-1][1]


def formation_step(scores: Sequence[tuple[int, float]]) -> int | None:
    """The first step from which on a score stays at half of its final value or above.

    None where it does so at all steps, or at the last alone, or its final value is not above zero.
    """
    final = scores[-1][1]
    if math.isnan(final):
        return None
    low = [at for at, (_, value) in enumerate(scores) if not value >= SHARE * final]
    if not low or final <= 0:  # high from the start, or never
        return None
    first = low[-1] + 1
    return scores[first][0] if first < len(scores) - 1 else None


def formations(over_steps: Mapping[int, Mapping[str, Tensor]]) -> list[Formation]:
    """The formation of each head by its largest final score, without heads of low scores.

    `over_steps` has, by step in order, each score of every head, (layers, heads), NaN where it
    has no meaning.
    """
    steps = [*over_steps]
    last = over_steps[steps[-1]]
    formed = []
    shape = next(iter(last.values())).shape
    for layer in range(shape[0]):
        for head in range(shape[1]):
            finals = {
                name: value
                for name, values in last.items()
                if not math.isnan(value := float(values[layer, head]))
            }
            if not finals:
                continue
            score = max(finals, key=lambda name: finals[name])
            if finals[score] >= NOTICEABLE:
                formed.append(formation_of(over_steps, score, layer, head))
    return formed


def formation_of(
    over_steps: Mapping[int, Mapping[str, Tensor]], score: str, layer: int, head: int
) -> Formation:
    """The formation of one head by this score, however low it is."""
    values = ((step, scores[score][layer, head]) for step, scores in over_steps.items())
    scores = tuple((step, float(value)) for step, value in values)
    return Formation(layer, head, score, scores, formation_step(scores))
