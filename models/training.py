"""Training: a generator of reports, which stops when the caller does.

Batches (the caller's `batch_at`) and dropout are functions of the seed and the step. So the
weights, the optimizer and the step are all there is to save, and a resumed training equals an
uninterrupted one, bit for bit.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor, nn
from torch.optim import Optimizer

from models import distributed
from models.config import TrainConfig
from models.losses import IGNORE, has_large_logits, label_smoothing, large_logits_loss
from models.model import Transformer
from models.optimizers import build_optimizer
from models.schedules import learning_rate

CPU = torch.device("cpu")
WITHOUT_GENERATOR = ("cpu", "meta")  # devices without a random generator of their own


@dataclass(frozen=True, eq=False)
class Batch:
    """The inputs of the model and the labels of its logits; labels of −100 are left out."""

    inputs: tuple[Int[Tensor, "b _t"], ...]
    labels: Int[Tensor, "b *t"]

    def to(self, device: torch.device) -> "Batch":
        return Batch(tuple(ids.to(device) for ids in self.inputs), self.labels.to(device))

    @property
    def n_labels(self) -> Tensor:
        """The number of labels that are not left out."""
        return (self.labels != IGNORE).sum()

    def rows(self, which: slice | Tensor) -> "Batch":
        """Some rows of the batch, by a slice or their places."""
        return Batch(tuple(ids[which] for ids in self.inputs), self.labels[which])

    def share(self) -> "Batch":
        """The texts that this one of the processes that train together reads."""
        return self.rows(slice(distributed.rank(), None, distributed.world_size()))

    def parts(self, most: int) -> list["Batch"]:
        """The batch in at most this many parts of equal size; the last may be smaller."""
        columns = zip(*(ids.chunk(most) for ids in (*self.inputs, self.labels)), strict=True)
        return [Batch(tuple(part[:-1]), part[-1]) for part in columns]


@dataclass(frozen=True)
class Report:
    """One finished step, counted from 1. `loss` in nats, before the update."""

    step: int
    loss: float
    lr: float
    grad_norm: float
    seconds: float


@dataclass
class TrainState:
    """What training changes besides the weights: the steps done and the optimizer's state."""

    step: int
    optimizer: Optimizer

    @classmethod
    def fresh(cls, model: nn.Module, config: TrainConfig) -> "TrainState":
        return cls(0, build_optimizer(model, config))


def train(
    model: nn.Module,
    batch_at: Callable[[int], Batch],
    config: TrainConfig,
    state: TrainState | None = None,
) -> Iterator[Report]:
    """Train up to `config.steps`, from `state.step` on; `state` is kept up to date in place.

    `batch_at(step)` must depend on the step alone; its batches are moved to the model's
    device. Cost of a step: three forward passes.
    Source of warm-up and label smoothing: Attention Is All You Need, sections 5.3, 5.4.
    """
    state = TrainState.fresh(model, config) if state is None else state
    device = next(model.parameters()).device
    objective = Objective(model, config)
    if config.compiled and device.type != "cpu":
        objective.compile()
    model.train()
    while state.step < config.steps:
        started = time.perf_counter()
        lr = learning_rate(config, state.step)
        for group in state.optimizer.param_groups:
            group["lr"] = lr
        batch = batch_at(state.step).to(device)
        state.optimizer.zero_grad(set_to_none=True)
        with seeded(config.seed + distributed.rank(), state.step, device):
            losses, n_labels = [], batch.n_labels
            for part in batch.share().parts(config.accumulation):
                part_loss = objective(part, n_labels)
                part_loss.backward()
                losses.append(part_loss.detach())
        loss = torch.stack(losses).sum()
        distributed.all_reduce(loss, model.parameters())
        norm = nn.utils.clip_grad_norm_(model.parameters(), config.clip or math.inf)
        state.optimizer.step()
        state.step += 1
        seconds = time.perf_counter() - started
        yield Report(state.step, loss.item(), lr, norm.item(), seconds)


class Objective(nn.Module):
    """The loss of a model as one module, to be compiled as a whole."""

    def __init__(self, model: nn.Module, config: TrainConfig) -> None:
        super().__init__()
        self.model, self.config = model, config

    def forward(self, batch: Batch, n_labels: Tensor) -> Tensor:
        """Its share of the loss of a batch with `n_labels` labels."""
        with in_precision(self.config.precision, n_labels.device):
            return batch_loss(self.model, batch, self.config.label_smoothing, n_labels)


def batch_loss(
    model: nn.Module, batch: Batch, smoothing: float = 0.0, n_labels: Tensor | None = None
) -> Tensor:
    """The loss of the batch, or its share of that of a larger one with `n_labels` labels."""
    if smoothing == 0 and isinstance(model, Transformer) and has_large_logits(model, batch.labels):
        return large_logits_loss(model, batch.inputs, batch.labels, n_labels)
    return label_smoothing(model(*batch.inputs), batch.labels, smoothing, n_labels)


def in_precision(precision: str, device: torch.device) -> AbstractContextManager[Any]:
    """Products of matrices are computed in this precision inside of the context."""
    if precision == "float32":
        return nullcontext()
    return torch.autocast(device.type, getattr(torch, precision))


@contextmanager
def seeded(seed: int, step: int, device: torch.device = CPU) -> Iterator[None]:
    """Make dropout a function of (seed, step) and of the type of the device.

    The global random states of the CPU and the device are restored after.
    """
    accelerators = [] if device.type in WITHOUT_GENERATOR else [device]
    number = (seed * 1_000_003 + step) % 2**63
    kind = device.type if accelerators else CPU.type
    with torch.random.fork_rng(accelerators, device_type=kind):
        torch.default_generator.manual_seed(number)
        for accelerator in accelerators:
            with torch.accelerator.device_index(accelerator.index):
                torch.get_device_module(accelerator).manual_seed(number)
        yield
