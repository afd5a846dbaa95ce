"""The settings of a run and its status: plain data, one JSON file each."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from explorer.catalog.parameters import count_parameters
from models.config import TransformerConfig
from models.loading.adapter_files import LARGEST_ALPHA
from models.lora import USUAL_TARGETS, add_lora, lora_fault
from models.model import Transformer
from models.training import TrainConfig

WAITING, TRAINING, PAUSED, STOPPED = "waiting", "training", "paused", "stopped"
DONE, FAILED, INTERRUPTED = "done", "failed", "interrupted"
STATES = (WAITING, TRAINING, PAUSED, STOPPED, DONE, FAILED, INTERRUPTED)

ACTIVE = (WAITING, TRAINING)
"""States in which a worker trains the run, or will without another command."""

RESUMABLE = (PAUSED, STOPPED, FAILED, INTERRUPTED)

LARGEST_SEED = 2**31 - 1
LARGEST_FLOAT32 = (2 - 2**-23) * 2.0**127
MOST_STEPS = 10_000_000

HOT = ("lr", "clip", "label_smoothing")
"""What may change between two steps of a training: nothing that is kept depends on it."""
HOT_VALUES = (*HOT, "evaluate_every")
"""What may change while a run trains."""

MEASURE = re.compile(r"[A-Za-z][A-Za-z0-9 -]{0,39}|")
"""The name of a metric, which is drawn as Markdown."""


@dataclass(frozen=True)
class RunSpec:
    """Everything that determines a training run, except a text of the reader's own.

    `training.seed` is the seed of the data, `weights_seed` that of the initial weights.
    `stop_at` ends the run at the first held-out metric that is as good. Held-out data is
    measured every `evaluate_every` steps, and at each snapshot; with 0 as often as its share of
    the time allows. `parent` names the model that it starts from, whose weights are in the run's
    folder; a `lora_rank` of 0 trains all of it.
    """

    task: str
    model: TransformerConfig
    training: TrainConfig
    weights_seed: int = 0
    stop_at: float | None = None
    evaluate_every: int = 0
    parent: str = ""
    lora_rank: int = 0
    lora_alpha: float = 16.0
    lora_targets: tuple[str, ...] = USUAL_TARGETS

    @cached_property
    def trained_parameters(self) -> int:
        """How many numbers the training changes: with LoRA those of the adapters and of a new head.

        Known without any memory for the weights.
        """
        if not self.lora_rank:
            return count_parameters(self.model)
        with torch.device("meta"):
            model = self.adapt(Transformer(self.model))
        return sum(each.numel() for each in model.parameters() if each.requires_grad)

    def adapt(self, model: Transformer) -> Transformer:
        """Freeze the parent, in place, but for its new adapters and the head of a classifier."""
        whole = ("head",) if self.model.head == "classifier" else ()
        return add_lora(
            model, self.lora_rank, self.lora_alpha, self.lora_targets, self.weights_seed, whole
        )

    @property
    def hot(self) -> dict[str, Any]:
        """The settings that may change while it trains."""
        training = {name: getattr(self.training, name) for name in HOT}
        return training | {"evaluate_every": self.evaluate_every}

    def with_hot(self, values: Mapping[str, Any]) -> RunSpec:
        """The same with other values of some of these."""
        training = {name: value for name, value in values.items() if name in HOT}
        every = values.get("evaluate_every", self.evaluate_every)
        changed = self.training.replace(**training)
        return dataclasses.replace(self, training=changed, evaluate_every=every)

    def fault(self) -> str | None:
        """One sentence saying why this cannot be run, or None when it can."""
        if not isinstance(self.task, str) or not self.task:
            return "A run needs the name of a task."
        if not isinstance(self.weights_seed, int) or not 0 <= self.weights_seed <= LARGEST_SEED:
            return f"The seed of the weights must be between 0 and {LARGEST_SEED}."
        if self.stop_at is not None and not is_float32(self.stop_at):
            return "The value to stop at must be a number."
        if not is_step(self.evaluate_every):
            return f"evaluate_every must be between 0 and {MOST_STEPS:,} steps."
        return self.model.fault() or self.training.fault() or self._parent_fault()

    def _parent_fault(self) -> str | None:
        rank, alpha, targets = self.lora_rank, self.lora_alpha, self.lora_targets
        if not isinstance(self.parent, str) or not is_step(rank):
            return "A run starts from the name of a model, and its LoRA rank is a whole number."
        if not is_float32(alpha) or not 0 < alpha <= LARGEST_ALPHA:
            return f"LoRA's α must be above 0 and at most {LARGEST_ALPHA:,}."
        if not isinstance(targets, tuple) or not all(isinstance(each, str) for each in targets):
            return "The matrices that get a LoRA adapter must be a list of names."
        if not rank:
            return None
        if not self.parent:
            return "LoRA adapts a model that was trained before: choose one to start from."
        return lora_fault(self.model, rank, targets)

    def to_dict(self) -> dict[str, Any]:
        plain = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return plain | {"model": self.model.to_dict(), "training": self.training.to_dict()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> RunSpec:
        """A spec from plain data. ValueError, in one sentence, when it is none."""
        known = {field.name for field in dataclasses.fields(cls)}
        if unknown := sorted(str(key) for key in values.keys() - known):
            raise ValueError(f"The run has unknown keys: {', '.join(unknown[:5])[:200]}.")
        if missing := sorted({"task", "model", "training"} - values.keys()):
            raise ValueError(f"The run has no {' and '.join(missing)}.")
        model = TransformerConfig.from_dict(values["model"])
        training = TrainConfig.from_dict(values["training"])
        targets = values.get("lora_targets", USUAL_TARGETS)
        targets = tuple(targets) if isinstance(targets, list) else targets
        read = {"model": model, "training": training, "lora_targets": targets}
        spec = cls(**values | read)
        if fault := spec.fault():
            raise ValueError(fault)
        return spec


@dataclass(frozen=True)
class Status:
    """The status of a run. `value` is the newest held-out metric, of the weights at step
    `measured_at`.
    """

    state: str = WAITING
    step: int = 0
    steps: int = 0
    loss: float | None = None
    measure: str = ""
    value: float | None = None
    measured_at: int | None = None
    steps_per_second: float = 0.0
    seconds: float = 0.0
    message: str = ""

    @property
    def is_active(self) -> bool:
        return self.state in ACTIVE

    @property
    def can_resume(self) -> bool:
        return self.state in RESUMABLE

    @property
    def share(self) -> float:
        """The finished share of the steps, from 0 to 1."""
        return min(1.0, self.step / self.steps) if self.steps > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """Seconds left at the current speed; None without one."""
        if self.state != TRAINING or self.steps_per_second <= 0:
            return None
        return max(0, self.steps - self.step) / self.steps_per_second

    def replace(self, **changes: Any) -> Status:
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Status:
        """A status from plain data; ValueError when a value is not of its kind."""
        known = {field.name for field in dataclasses.fields(cls)}
        status = cls(**{name: value for name, value in values.items() if name in known})
        if status.state not in STATES:
            raise ValueError("The status has an unknown state.")
        optional = (status.loss, status.value, status.measured_at)
        found = [each for each in optional if each is not None]
        counts = (status.step, status.steps, status.measured_at or 0)
        numbers = (status.steps_per_second, status.seconds, *found)
        if not all(map(is_step, counts)) or not all(map(is_float32, numbers)):
            raise ValueError("The status has a value that is not a number where one is needed.")
        if not isinstance(status.message, str) or not isinstance(status.measure, str):
            raise ValueError("The status has a value that is not text where text is needed.")
        if not MEASURE.fullmatch(status.measure):
            raise ValueError("The status has an invalid name of a metric.")
        return status


def is_step(value: object) -> bool:
    """Whether a run can have this step, or as many."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_STEPS


def is_float32(value: object) -> bool:
    """Whether a tensor can have had this value, other than infinity and NaN."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return abs(value) <= LARGEST_FLOAT32
