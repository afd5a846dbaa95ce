"""How large a training is, before it starts: its parameters, its memory, its speed.

Nothing of the model that is asked for is allocated but where it is small enough to be timed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import median
from threading import Lock

from cachetools import LRUCache, cached

from explorer.app import limits
from explorer.catalog import waiting
from explorer.catalog.parameters import count_parameters
from explorer.catalog.pass_budget import shape_of
from explorer.catalog.pass_size import NUMBER, PassShape, pass_size
from explorer.runs.spec import RunSpec
from explorer.tasks import TASKS, Task
from models import Transformer, TransformerConfig
from models.loading.memory import available_memory
from models.training import TrainConfig, batch_loss

STATE = {"sgd": 1, "adam": 2, "adamw": 2, "muon": 2}
"""Numbers that an optimizer keeps of each parameter, at most."""
FEW = 16
"""Examples of the batch whose lengths stand for those of all."""
TIMED = 3
LARGEST_TIMED = 2e9
"""Floating-point operations of one step; a larger one is not timed but estimated."""
CALIBRATION = {"n_layers": 2, "d_model": 256, "n_heads": 4, "d_ff": 1024}
"""The sizes of the model whose speed stands for that of larger ones."""


@dataclass(frozen=True)
class TrainingSize:
    """Parameters, bytes by what holds them, and floating-point operations of one update.

    `activations` is what the forward and backward pass of one batch hold at their peak: an upper
    bound (`explorer.catalog.pass_size`).
    """

    parameters: int
    weights: int
    gradients: int
    optimizer: int
    activations: int
    operations: float

    @property
    def memory(self) -> int:
        return self.weights + self.gradients + self.optimizer + self.activations


@dataclass(frozen=True)
class ExpectedSpeed:
    """Updates a second, and whether this very model was timed."""

    steps_per_second: float
    is_timed: bool


def training_size(task: Task, spec: RunSpec) -> TrainingSize:
    """Of a run of this task. Cost: a few examples of its first batch, and no model."""
    parameters, shape = count_parameters(spec.model), batch_shape(task, spec)
    trained, optimizer = NUMBER * spec.trained_parameters, spec.training.optimizer
    kept = STATE[optimizer] if optimizer != "sgd" or spec.training.momentum else 0
    tokens = spec.training.batch_size * (shape.tokens + shape.target)
    return TrainingSize(
        parameters,
        weights=NUMBER * parameters,
        gradients=trained,
        optimizer=kept * trained,
        activations=pass_size(spec.model, shape).peak,
        operations=_operations(spec.model, parameters, tokens, max(shape.tokens, shape.target)),
    )


def memory_fault(task: Task, spec: RunSpec) -> str | None:
    """A sentence where the training does not fit into the memory of this machine, or of a run."""
    needed, free = training_size(task, spec).memory, available_memory()
    if limits.RUN_MEMORY.allows(needed) and needed <= free:
        return None
    of = "a run here" if limits.RUN_MEMORY.most < free else "this machine now"
    room = limits.RUN_MEMORY.in_words(min(limits.RUN_MEMORY.most, free))
    return (
        f"This training needs about {limits.RUN_MEMORY.in_words(needed)} of memory and {of} has "
        f"{room}: make the model or the batch smaller."
    )


def batch_shape(task: Task, spec: RunSpec) -> PassShape:
    """What one forward pass of the training reads; its lengths are those of the first examples."""
    training = spec.training
    few = task.batch(0, training.replace(batch_size=min(FEW, training.batch_size)))
    shape = shape_of(spec.model, few.inputs, slice(None))
    texts = -(-training.batch_size // training.accumulation)
    return replace(shape, texts=texts, leaves="graph")


def expected_speed(task: Task, spec: RunSpec) -> ExpectedSpeed:
    """Of forward and backward passes: timed where the model is small, else by its operations."""
    operations = training_size(task, spec).operations
    if operations <= LARGEST_TIMED:
        return ExpectedSpeed(1 / _timed(task, spec.model, spec.training), is_timed=True)
    return ExpectedSpeed(_operations_per_second() / operations, is_timed=False)


def _key(task: Task, model: TransformerConfig, training: TrainConfig) -> object:
    return task.name, model, training.batch_size, training.accumulation


@cached(LRUCache(256), key=_key, lock=Lock())
def _timed(task: Task, model: TransformerConfig, training: TrainConfig) -> float:
    """Seconds on a core of a batch and its two passes: the median of three after a first.

    Not by the clock: who else computes now does not count. The update, which is little beside
    it, would have the server load what only workers need.
    """
    built, took = Transformer(model).train(), []
    for step in range(TIMED + 1):
        waiting.step()
        began = time.thread_time()
        for part in task.batch(step, training).parts(training.accumulation):
            batch_loss(built, part, training.label_smoothing).backward()
        took.append(time.thread_time() - began)
    return median(took[1:])


@lru_cache(maxsize=1)
def _operations_per_second() -> float:
    """Of this machine, with one thread, on the layers of a wider model."""
    task = TASKS["reverse"]
    spec = RunSpec(task.name, task.model.replace(**CALIBRATION), task.training)
    seconds = _timed(task, spec.model, spec.training)
    return training_size(task, spec).operations / seconds


def _operations(config: TransformerConfig, parameters: int, tokens: int, length: int) -> float:
    """For each token 6 for each parameter it passes, and 12 · layers · width · length of attention.

    Of two stacks a token passes one, about half of the parameters. Embeddings are counted though
    they only look up, so it is a little much. Source: PaLM (Chowdhery et al. 2022), appendix B.
    """
    passed = parameters / len(config.stacks)
    return tokens * (6 * passed + 12 * config.n_layers * config.d_model * length)
