"""What a small task is: data without end, a held-out set, and what to look for.

A task is plain and unchanging: batches follow from a seed and a step, so a
training can be stopped, resumed or repeated, and the held-out set is the same
for every model that is ever trained on it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from explorer.text import Token, Tokenizer
from models.config import TransformerConfig
from models.training import Batch, TrainConfig
from models.transformer import Transformer


@dataclass(frozen=True)
class Measurement:
    """A number about a model, on data that training never sees."""

    name: str
    value: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Task(ABC):
    """One task: what it shows, what it is made of, and the defaults that learn it.

    `goal` is the held-out value that the default model and training reach.
    `held_out` says in words what training never sees. `pattern_site` names the
    attention that `pattern` describes; `classes` names what a classifier tells apart.
    """

    name: str
    title: str
    explanation: str
    expectation: str
    examples: tuple[str, ...]
    tokenizer: Tokenizer
    model: TransformerConfig
    training: TrainConfig
    goal: float
    higher_is_better: bool = True
    held_out: str
    pattern_site: str = ""
    classes: tuple[str, ...] = ()

    @property
    def example(self) -> str:
        """The text that a new reader sees first."""
        return self.examples[0]

    @property
    def measured_between(self) -> tuple[float, float]:
        """A share, or the nats of each token from none to those of a blind guess."""
        return (0.0, 1.0) if self.higher_is_better else (0.0, math.log(self.model.vocab_size))

    @abstractmethod
    def batch(self, step: int, training: TrainConfig) -> Batch:
        """The batch of this step: a function of (training.seed, step), nothing held out in it."""

    @abstractmethod
    def measure(self, model: Transformer) -> Measurement:
        """How good the model is on the held-out set."""

    def pattern(
        self, source: Sequence[Token], target: Sequence[Token] = ()
    ) -> Float[Tensor, "q k"] | None:
        """The attention one expects at `pattern_site`, or None where nothing is expected.

        `target` is what the decoder of an encoder-decoder reads, `<s>` first; row i
        belongs to the query that writes token i + 1. Rows sum to 1 or, where
        anything may happen, to 0.
        """
        return None


def generator(seed: int, step: int) -> torch.Generator:
    """Random numbers that follow from the seed and the step alone."""
    return torch.Generator().manual_seed((seed * 1_000_003 + step * 7_919 + 17) % 2**63)


def pattern_of(
    task: Task, source: Sequence[Token], target: Sequence[Token], shape: Sequence[int]
) -> Float[Tensor, "q k"] | None:
    """The task's pattern where it expects something of a map of this shape, else None."""
    pattern = task.pattern(source, target)
    expects = pattern is not None and pattern.shape == tuple(shape) and bool(pattern.any())
    return pattern if expects else None


def pattern_score(weights: Float[Tensor, "q k"], pattern: Float[Tensor, "q k"]) -> float:
    """How much of the attention lies where it was expected, averaged over the expecting rows."""
    expecting = pattern.sum(-1) > 0
    on_pattern = (weights * (pattern > 0)).sum(-1)
    return on_pattern[expecting].mean().item()
