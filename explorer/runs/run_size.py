"""The size of a training before it starts: its parameters, its memory, its speed.

Only a model that is small enough to be timed is built.
"""

import time
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from statistics import median

import torch
from cachetools import LRUCache, cached

from explorer.catalog.parameters import count_parameters
from explorer.catalog.pass_budget import NUMBER, PassShape, pass_size, reserve, shape_of
from explorer.runs.spec import RunSpec
from explorer.system import cooperative, limits
from explorer.system.cooperative import CancellableCondition
from explorer.system.pace import snapshot_steps
from explorer.tasks import TASKS, Task
from explorer.tasks.task_metrics import by_parts
from models import Transformer
from models.loading.memory import available_memory
from models.training import batch_loss, in_precision

STATE = {"sgd": 1, "adam": 2, "adamw": 2, "muon": 3}
"""Numbers that an optimizer keeps or computes at once for each parameter, at most."""
FEW_EXAMPLES = 16
"""Examples whose lengths stand for those of the whole batch."""
TIMED = 3
LARGEST_TIMED = 2e9
"""Floating-point operations of one step; a larger one is not timed but estimated."""
MEASURING_SHARE = 0.2
"""Of the operations of a training, for all its measurements together: the curve is worth that, and
more would be felt. A table with more rows is measured on a fixed sample.
"""
LEAST_MEASURED = 64
"""Held-out rows of a measurement, also of a short training: fewer would say little."""
CALIBRATION = {"n_layers": 2, "d_model": 256, "n_heads": 4, "d_ff": 1024}
"""The sizes of the model whose speed stands for that of larger ones."""


@dataclass(frozen=True)
class TrainingSize:
    """Parameters, bytes by what holds them, and floating-point operations of one update.

    `activations` are the bytes that the forward and backward pass of one batch need at their peak,
    an upper bound (`explorer.catalog.pass_budget`).
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
    """Updates a second, and whether this model itself was timed."""

    steps_per_second: float
    is_timed: bool


@lru_cache(maxsize=512)
def trained_parameters(spec: RunSpec) -> int:
    """The number of trained parameters; with LoRA those of the adapters and of a new head.

    Computing it needs no memory for the weights.
    """
    if not spec.lora_rank:
        return count_parameters(spec.model)
    with torch.device("meta"):
        model = spec.adapt(Transformer(spec.model))
    return sum(weight.numel() for weight in model.parameters() if weight.requires_grad)


def training_size(task: Task, spec: RunSpec) -> TrainingSize:
    """The size of a run of this task. Cost: a few examples of its first batch, and no model."""
    parameters, shape = count_parameters(spec.model), batch_shape(task, spec)
    trained, optimizer = NUMBER * trained_parameters(spec), spec.training.optimizer
    moments = STATE[optimizer] if optimizer != "sgd" or spec.training.momentum else 0
    tokens = spec.training.batch_size * (shape.tokens + shape.target)
    return TrainingSize(
        parameters,
        weights=NUMBER * parameters,
        gradients=trained,
        optimizer=moments * trained,
        activations=pass_size(spec.model, shape).peak,
        operations=_operations(spec, parameters, tokens, max(shape.tokens, shape.target)),
    )


def memory_fault(task: Task, spec: RunSpec) -> str | None:
    """A sentence if the training does not fit into the memory of this machine, or of a run."""
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
    """The shape of one forward pass of the training, with the lengths of the first examples."""
    training = spec.training
    few = task.batch(0, training.replace(batch_size=min(FEW_EXAMPLES, training.batch_size)))
    shape = shape_of(spec.model, few.inputs, slice(None))
    texts = -(-training.batch_size // training.accumulation)
    return replace(shape, texts=texts, leaves="graph")


def expected_speed(task: Task, spec: RunSpec) -> ExpectedSpeed:
    """The speed of forward and backward passes and of the measurements on held-out data between
    them: timed if the model is small, else estimated.
    """
    size, steps = training_size(task, spec), spec.training.steps
    is_timed = size.operations <= LARGEST_TIMED and limits.PASS_BYTES.allows(size.memory)
    if is_timed:
        update, measurement = _seconds_of_batch(task, spec)
    else:
        update = size.operations / _operations_per_second(spec.training.precision)
        measurement = update / 3  # a forward pass alone
    batches = measured_rows(task, spec) / spec.training.batch_size
    seconds = steps * update + _measurements(spec) * batches * measurement
    return ExpectedSpeed(steps / seconds, is_timed)


def measured_rows(task: Task, spec: RunSpec) -> int:
    """The held-out rows that each measurement of a run reads, by its settings at the start.

    A row costs a forward pass, a third of what it costs in training.
    """
    share = MEASURING_SHARE * 3 * spec.training.steps * spec.training.batch_size
    most = max(LEAST_MEASURED, int(share / _measurements(spec)))
    return min(len(task.held_out_batch.labels), most)


def _measurements(spec: RunSpec) -> int:
    """How often a run measures its held-out data: before the first step, and after some."""
    steps, every = spec.training.steps, spec.evaluate_every
    between = sum(1 for step in snapshot_steps(steps) if not every or step % every)
    return 1 + between + (steps // every if every else 0)


def _key(task: Task, spec: RunSpec) -> object:
    training = spec.training
    few = task.batch(0, training.replace(batch_size=FEW_EXAMPLES, seed=0))
    text = blake2b(b"".join(ids.numpy().tobytes() for ids in few.inputs)).digest()
    how = training.batch_size, training.accumulation, training.precision
    return task.name, text, spec.model, how, spec.lora_rank, spec.lora_targets


@cached(LRUCache(256), key=_key, condition=CancellableCondition())
def _seconds_of_batch(task: Task, spec: RunSpec) -> tuple[float, float]:
    """Seconds of one core for a batch and its two passes, the median of three after a first, and
    for the measurement of as many held-out examples.

    Of each batch one part is computed, which stands for all its parts: a batch may have a thousand.
    It is measured once for all readers, and waits until there is room for it. The time is the
    thread's, so that other work on the machine does not count. The update takes little time, and
    would make the server load modules that only workers need, so it is left out.
    """
    training, took = spec.training, []
    with reserve(training_size(task, spec).memory):
        model = Transformer(spec.model).train()
        model = spec.adapt(model) if spec.lora_rank else model
        for step in range(TIMED + 1):
            cooperative.step()
            began = time.thread_time()
            parts = task.batch(step, training).parts(training.accumulation)
            batch_ready = time.thread_time()
            with in_precision(training.precision, parts[0].labels.device):
                loss = batch_loss(model, parts[0], training.label_smoothing)
            loss.backward()
            took.append(batch_ready - began + len(parts) * (time.thread_time() - batch_ready))
        cooperative.step()
        began = time.thread_time()
        read, _ = next(by_parts(task.metric[1], model, task.held_out_batch))
        measurement = (time.thread_time() - began) * training.batch_size / max(1, read)
    return median(took[1:]), measurement


@lru_cache
def _operations_per_second(precision: str) -> float:
    """The speed of this machine with one thread, in this precision, on a wider model."""
    task = TASKS["reverse"]
    training = task.training.replace(precision=precision)
    spec = RunSpec(task.name, task.model.replace(**CALIBRATION), training)
    seconds, _ = _seconds_of_batch(task, spec)
    return training_size(task, spec).operations / seconds


def _operations(spec: RunSpec, parameters: int, tokens: int, length: int) -> float:
    """For each token 6 per parameter, and 12 · layers · width · length for attention.

    A frozen parameter costs 4: its own gradient is not computed. With two stacks, a token passes
    one, about half of the parameters. Embeddings count though they are only looked up, so this is
    a slight overestimate. Source: PaLM (Chowdhery et al. 2022), appendix B.
    """
    config = spec.model
    passed = (4 * parameters + 2 * trained_parameters(spec)) / len(config.stacks)
    return tokens * (passed + 12 * config.n_layers * config.d_model * length)
