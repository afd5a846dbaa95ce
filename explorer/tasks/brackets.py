"""Are the brackets balanced? It takes counting: as many close as open, and never more so far."""

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import ClassVar

import torch
from jaxtyping import Int
from torch import Tensor

from explorer.tasks.batches import Rows, is_held_out, sample_rows, sentence_rows, some_rows, trimmed
from explorer.tasks.task import SMALLER, BuiltinTask, Sizes, generator
from explorer.tasks.task_metrics import accuracy
from explorer.text import CLASSIFIER, TrainedWith, character_tokenizer
from models.config import TrainConfig
from models.training import Batch

LONGEST_BRACKETS = 12
ONE_HELD_OUT_IN = 4
"""One in this many is held out: of 196 balanced texts one in eight would be too few to measure."""
CLASSES = ("unbalanced", "balanced")
READ = 32
"""Brackets that the model can read: more than in training, for a reader to try longer texts."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Brackets(BuiltinTask):
    """Every text of 2, 4, … 12 brackets; an odd number would give its class away.

    Half of a batch is balanced. Of the other half, half has as many closing as opening
    brackets, so that counting them all is not enough.
    """

    metric = ("accuracy", accuracy)
    kind: ClassVar[str] = "encoder"
    sizes: ClassVar[Sizes] = SMALLER | {"n_layers": 2, "d_ff": 64, "max_len": READ + 1}
    steps: ClassVar[int] = 1600
    lr: ClassVar[float] = 3e-3

    name: str = "brackets"
    title: str = "Balanced brackets"
    explanation: str = (
        "The model says whether every bracket that opens is closed again. It has to count: as many "
        "must close as open, and at no place may more have closed than opened."
    )
    expectation: str = (
        "Heads spread over many brackets at once, to count them, more than they single one out."
    )
    examples: tuple[str, ...] = ("(()())", "())(()", "((((()))))", "()()()(", "(())()))")
    goal: float = 0.99
    held_out: str = f"one text in {ONE_HELD_OUT_IN}, always the same, by a hash of its brackets"
    classes: tuple[str, ...] = CLASSES

    @classmethod
    def vocabulary(cls) -> TrainedWith:
        return character_tokenizer("()", CLASSIFIER)

    @cached_property
    def groups(self) -> tuple[Rows, ...]:
        """Balanced texts; unbalanced ones with as many of either bracket; all others."""
        texts = [
            "".join(letters)
            for n in range(2, LONGEST_BRACKETS + 1, 2)
            for letters in product("()", repeat=n)
        ]
        rows = sentence_rows(self.tokenizer, texts)
        is_even = torch.tensor([text.count("(") == text.count(")") for text in texts])
        balanced = torch.tensor([is_balanced(text) for text in texts])
        return rows[balanced], rows[is_even & ~balanced], rows[~is_even]

    @cached_property
    def training_rows(self) -> tuple[Rows, ...]:
        return tuple(rows[~is_held_out(rows, ONE_HELD_OUT_IN)] for rows in self.groups)

    @cached_property
    def held_out_batch(self) -> Batch:
        """All held-out balanced texts, and as many others, half of them near misses."""
        balanced, near, far = (rows[is_held_out(rows, ONE_HELD_OUT_IN)] for rows in self.groups)
        half = len(balanced) // 2
        near, far = (some_rows(rows, n) for rows, n in ((near, half), (far, len(balanced) - half)))
        return _batch_of(balanced, near, far)

    @property
    def training_size(self) -> int:
        return sum(map(len, self.training_rows))

    def batch(self, step: int, training: TrainConfig) -> Batch:
        random, size = generator(training.seed, step), training.batch_size
        counts = (size // 2, size // 4, size - size // 2 - size // 4)
        samples = [
            rows[sample_rows(count, len(rows), random)]
            for rows, count in zip(self.training_rows, counts, strict=True)
        ]
        batch, order = _batch_of(*samples), torch.randperm(size, generator=random)
        return Batch((trimmed(batch.inputs[0][order]),), batch.labels[order])


def is_balanced(text: str) -> bool:
    """Whether every bracket that opens is closed, and none closes before."""
    depth = 0
    for bracket in text:
        depth += 1 if bracket == "(" else -1
        if depth < 0:
            return False
    return depth == 0


def _batch_of(balanced: Rows, *others: Rows) -> Batch:
    rows = torch.cat([balanced, *others])
    labels: Int[Tensor, b] = (torch.arange(len(rows)) < len(balanced)).long()
    return Batch((rows,), labels)
