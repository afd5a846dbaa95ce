"""Training: a generator of reports, which stops when no more are asked for.

Everything random is a function of the seed and the step, the batches (the caller's
`batch_at`) and the dropout alike. So weights, optimizer and step are all there is to
save, and a resumed training gives what an uninterrupted one gives, bit for bit.
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
from models.losses import IGNORE, has_large_logits, label_smoothing, large_logits_loss
from models.model import Transformer
from models.optimizers import OPTIMIZERS, optimizer_of
from models.plain import PlainData, choice_field, number_field
from models.schedules import SCHEDULES, peak_rate, scheduled_rate

CPU = torch.device("cpu")
WITHOUT_GENERATOR = ("cpu", "meta")
"""Types of device that have no random generator besides the CPU's."""
PRECISIONS = ("float32", "bfloat16")


@dataclass(frozen=True)
class TrainConfig(PlainData):
    """How to train: `warmup` counts steps; `clip` 0 leaves the gradients as they are.

    `lr` is the highest rate, at the end of the warm-up. `momentum` is the share of the former
    direction that is kept: SGD's, Muon's, and Adam's β₁; `beta2` and `eps` are Adam's. A batch
    goes through the model in `accumulation` parts, one after another, for a single update: the
    same but for dropout, in less memory. With `precision` bfloat16 products are computed so;
    weights stay in 32 bits. `compiled` is for an accelerator and does nothing on a CPU. `seed`
    is that of batches and dropout; the weights' own is the model's.
    """

    steps: int = number_field(400, 1, 10_000_000)
    batch_size: int = number_field(64, 1, 4096)
    accumulation: int = number_field(1, 1, 4096)
    lr: float = number_field(3e-3, 1e-8, 1e9)
    warmup: int = number_field(50, 0, 10_000_000)
    schedule: str = choice_field("constant", SCHEDULES)
    optimizer: str = choice_field("adamw", OPTIMIZERS)
    momentum: float = number_field(0.9, 0, 0.9999)
    beta2: float = number_field(0.999, 0, 0.999999)
    eps: float = number_field(1e-8, 1e-16, 1)
    weight_decay: float = number_field(0.01, 0, 10)
    clip: float = number_field(1.0, 0, 1e6)
    label_smoothing: float = number_field(0.0, 0, 0.95)
    precision: str = choice_field("float32", PRECISIONS)
    compiled: bool = False
    seed: int = number_field(0, 0, 2**31 - 1)


@dataclass(frozen=True, eq=False)
class Batch:
    """The inputs of the model and the labels of its logits; labels of −100 are left out."""

    inputs: tuple[Int[Tensor, "b _t"], ...]
    labels: Int[Tensor, "b *t"]

    def to(self, device: torch.device) -> "Batch":
        return Batch(tuple(ids.to(device) for ids in self.inputs), self.labels.to(device))

    @property
    def n_labels(self) -> Tensor:
        """How many labels are not left out."""
        return (self.labels != IGNORE).sum()

    def share(self) -> "Batch":
        """Of the processes that train together, the texts that this one reads."""
        own = slice(distributed.rank(), None, distributed.world_size())
        return Batch(tuple(ids[own] for ids in self.inputs), self.labels[own])

    def parts(self, most: int) -> list["Batch"]:
        """At most so many parts, of as many texts each as the others, or of fewer in the last."""
        columns = zip(*(ids.chunk(most) for ids in (*self.inputs, self.labels)), strict=True)
        return [Batch(tuple(part[:-1]), part[-1]) for part in columns]


@dataclass(frozen=True)
class Report:
    """One finished step, counted from 1. `loss` in nats, before the update it led to."""

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
            loss = accumulate(objective, batch.share(), batch.n_labels, config.accumulation)
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        distributed.all_reduce([loss, *gradients])
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
        """Its share in the loss of a batch with so many labels."""
        with in_precision(self.config.precision, n_labels.device):
            return batch_loss(self.model, batch, self.config.label_smoothing, n_labels)


def accumulate(objective: nn.Module, batch: Batch, n_labels: Tensor, parts: int) -> Tensor:
    """Adds the gradients of the batch to the parameters, part by part; its loss."""
    losses = []
    for part in batch.parts(parts):
        loss = objective(part, n_labels)
        loss.backward()
        losses.append(loss.detach())
    return torch.stack(losses).sum()


def batch_loss(
    model: nn.Module, batch: Batch, smoothing: float = 0.0, n_labels: Tensor | None = None
) -> Tensor:
    """The loss of the batch, or its share in that of a larger one with so many labels."""
    if smoothing == 0 and isinstance(model, Transformer) and has_large_logits(model, batch.labels):
        return large_logits_loss(model, batch.inputs, batch.labels, n_labels)
    return label_smoothing(model(*batch.inputs), batch.labels, smoothing, n_labels)


def in_precision(precision: str, device: torch.device) -> AbstractContextManager[Any]:
    """In here products of matrices are computed in this precision."""
    if precision == "float32":
        return nullcontext()
    return torch.autocast(device.type, getattr(torch, precision))


def learning_rate(config: TrainConfig, step: int) -> float:
    """The rate of the update after `step` earlier ones."""
    return scheduled_rate(config.schedule, config.lr, step, config.steps, config.warmup)


PAPER_TRAINING = TrainConfig(
    steps=100_000,
    lr=peak_rate(d_model=512, warmup=4000),
    warmup=4000,
    schedule="inverse square root",
    optimizer="adam",
    beta2=0.98,
    eps=1e-9,
    weight_decay=0.0,
    clip=0.0,
    label_smoothing=0.1,
)
"""How the paper trained the base model of `presets.paper`, but for its batches of 25,000 tokens.

Source: Attention Is All You Need, sections 5.2 to 5.4.
"""


def build_optimizer(model: nn.Module, config: TrainConfig) -> Optimizer:
    return optimizer_of(
        model,
        config.optimizer,
        lr=config.lr,
        momentum=config.momentum,
        beta2=config.beta2,
        eps=config.eps,
        weight_decay=config.weight_decay,
    )


@contextmanager
def seeded(seed: int, step: int, device: torch.device = CPU) -> Iterator[None]:
    """Dropout in here is a function of (seed, step), and of the type of the device.

    The global random states, the CPU's and the device's, come back after.
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
