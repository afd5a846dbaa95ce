"""Hold out examples by a hash of their token IDs.

A hash needs no list, so it also splits sets that are too large to enumerate, and an
example is on the same side for every seed and every run.
"""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool
from torch import Tensor

from explorer.tasks.batches import Rows
from explorer.tasks.task import BuiltinTask, generator
from models.config import TrainConfig
from models.training import Batch

ONE_IN = 8
"""One example in this many is held out."""
MEASURED = 256
"""Held-out examples that the metric reads."""


def is_held_out(rows: Rows, one_in: int = ONE_IN) -> Bool[Tensor, "b"]:
    """Whether each row of token IDs is held out; zeros at the end change nothing."""
    places = torch.arange(1, rows.shape[1] + 1)
    mixed = (rows * (places * 0x9E3779B1 + 0x7F4A7C15) % 0x7FFFFFFF).sum(-1)
    mixed = (mixed ^ (mixed >> 13)) * 0x5BD1E995 % 0x7FFFFFFF
    mixed = (mixed ^ (mixed >> 15)) * 0x27D4EB2F % 0x7FFFFFFF
    return (mixed ^ (mixed >> 11)) % one_in == 0


def some_rows(rows: Tensor, count: int) -> Tensor:
    """`count` of these rows in a random order, the same ones each time."""
    return rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))[:count]]


@dataclass(frozen=True, eq=False, kw_only=True)
class GeneratedTask(BuiltinTask):
    """A task whose examples are sampled without end."""

    @abstractmethod
    def draw(self, count: int, random: torch.Generator) -> Rows:
        """Random examples, padded at the end with zeros."""

    @abstractmethod
    def batch_of(self, rows: Rows, random: torch.Generator | None) -> Batch:
        """The batch of these examples; `random` is None if they are held out."""

    def identity(self, rows: Rows) -> Rows:
        """The rows that the hash reads for these examples."""
        return rows

    def batch(self, step: int, training: TrainConfig) -> Batch:
        random = generator(training.seed, step)
        rows = self.draw(training.batch_size, random)
        while (again := is_held_out(self.identity(rows))).any():
            rows[again] = self.draw(int(again.sum()), random)
        return self.batch_of(rows, random)

    @cached_property
    def held_out_batch(self) -> Batch:
        """Different examples: `MEASURED` of them, or as many as there are."""
        random = generator(seed=0, step=0)
        rows = self.draw(0, random)
        for _ in range(20):
            more = self.draw(MEASURED * ONE_IN, random)
            rows = torch.cat([rows, more[is_held_out(self.identity(more))]]).unique(dim=0)
            if len(rows) >= MEASURED:
                break
        return self.batch_of(some_rows(rows, MEASURED), None)
