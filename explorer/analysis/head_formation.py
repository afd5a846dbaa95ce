"""When a head learns what it does: its scores over the steps of a training, and where they rise."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

NOTICEABLE = 0.3
"""The lowest final score of a head that is said to do something."""
SHARE = 0.5


@dataclass(frozen=True)
class Formation:
    """What a head does in the end, and when it began.

    `scores` are those of every step. `step` is the first from which on the score stays at half
    of its final value or above; None where all steps do, or the last one alone.
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

    None where all steps do, or the last one alone, or where the final value is not above zero.
    """
    final = scores[-1][1]
    if math.isnan(final):
        return None
    low = [at for at, (_, value) in enumerate(scores) if not value >= SHARE * final]
    if not low or final <= 0:  # it was there from the start, or it is nothing
        return None
    first = low[-1] + 1
    return scores[first][0] if first < len(scores) - 1 else None


def formations(over_steps: Mapping[int, Mapping[str, Tensor]]) -> list[Formation]:
    """For each head its highest final score, and when it formed; those that do nothing left out.

    `over_steps` has by step, in their order, each score of every head, (layers, heads), NaN where
    it has no meaning.
    """
    steps = [*over_steps]
    last = over_steps[steps[-1]]
    found = []
    shape = next(iter(last.values())).shape
    for layer in range(shape[0]):
        for head in range(shape[1]):
            finals = {
                name: value
                for name, each in last.items()
                if not math.isnan(value := float(each[layer, head]))
            }
            if not finals:
                continue
            score = max(finals, key=lambda name: finals[name])
            if finals[score] >= NOTICEABLE:
                found.append(formation_of(over_steps, score, layer, head))
    return found


def formation_of(
    over_steps: Mapping[int, Mapping[str, Tensor]], score: str, layer: int, head: int
) -> Formation:
    """The same of one score of one head, however low it is."""
    scores = tuple((step, float(each[score][layer, head])) for step, each in over_steps.items())
    return Formation(layer, head, score, scores, formation_step(scores))
