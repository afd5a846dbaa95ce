"""A question asked of every snapshot of a training: when a circuit forms.

What is measured stays what the trained model is asked: the same tokens, answers and metric.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from explorer.analysis.attribution_patching import Attribution, attribute
from explorer.analysis.circuits.measure import EdgeScores, contrast_of, scores_of
from explorer.analysis.circuits.outcome import KL
from explorer.analysis.circuits.text_pairs import Question
from explorer.catalog.opened_model import Opened


@dataclass(frozen=True, eq=False)
class ScoresAtStep:
    """The estimates with the weights after so many steps of training."""

    step: int
    scores: EdgeScores


def why_not_over_training(question: Question) -> str:
    """Why a metric cannot be followed through training, in a sentence; empty where it can."""
    if question.metric != KL:
        return ""
    return (
        "KL divergence is measured from the trained model's own answer, which earlier steps do "
        "not have: choose another metric."
    )


def over_training(
    question: Question, snapshots: Iterable[tuple[int, Opened]], steps: int
) -> Iterator[ScoresAtStep]:
    """The estimates of every edge with the weights of one snapshot after another.

    Each costs what `attribute` does, times the pairs.
    """
    for step, opened in snapshots:
        found: list[Attribution] = [
            attribute(contrast_of(opened, pair), steps) for pair in question.pairs
        ]
        yield ScoresAtStep(step, scores_of(opened, found))
