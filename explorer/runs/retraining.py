"""Train a run again, in memory, to have its weights and the optimizer's state at any step.

A snapshot holds only weights, and the folder keeps the optimizer's state of the newest step only.
But a training is a function of its settings: training again from step 0 gives both, and the
weights can be compared with the snapshot's.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from explorer.catalog.pass_budget import steps_between_layers
from explorer.runs.finetuning import initial_model
from explorer.runs.hot_changes import spec_at
from explorer.runs.run import Run, step_folders
from explorer.runs.spec import RunSpec
from explorer.tasks import Task
from models import Transformer, load_checkpoint
from models.config import TrainConfig
from models.loading.checkpoint import load_state
from models.training import TrainState, train


@dataclass(frozen=True, eq=False)
class ModelInTraining:
    """A model with the state of its training; training on changes both."""

    model: Transformer
    state: TrainState
    training: TrainConfig

    @property
    def bytes(self) -> int:
        memories = self.state.optimizer.state.values()
        tensors = [tensor for memory in memories for tensor in memory.values()]
        return sum(tensor.nbytes for tensor in [*self.model.parameters(), *tensors])

    def copy(self) -> "ModelInTraining":
        """A copy that can be trained without changing the original."""
        model = copy.deepcopy(self.model)
        state = TrainState.fresh(model, self.training)
        state.step = self.state.step
        # An optimizer cannot be copied directly: a copy of Muon loses its AdamW.
        for ours, theirs in zip(self.model.parameters(), model.parameters(), strict=True):
            if memory := self.state.optimizer.state.get(ours):
                state.optimizer.state[theirs] = {
                    name: tensor.clone() for name, tensor in memory.items()
                }
        return ModelInTraining(model, state, self.training)


def at_step_0(run: Run, spec: RunSpec) -> ModelInTraining:
    """The run before its first update."""
    model = initial_model(run.folder, spec)
    return ModelInTraining(model, TrainState.fresh(model, spec.training), spec.training)


def at_saved_step(
    run: Run, spec: RunSpec, device: str | torch.device = "cpu"
) -> ModelInTraining | None:
    """The newest complete state in the run's folder, from which the run would resume."""
    for _, folder in reversed(step_folders(run.folder / "state")):
        try:
            model = load_checkpoint(folder, merging=False).model.to(device)
            return ModelInTraining(model, load_state(folder, model, spec.training), spec.training)
        except (OSError, ValueError):
            continue
    return None


def from_snapshot(folder: Path, step: int, spec: RunSpec) -> ModelInTraining:
    """The weights of a snapshot with the state of a new optimizer."""
    model = load_checkpoint(folder, merging=False).model
    state = TrainState.fresh(model, spec.training)
    state.step = step
    return ModelInTraining(model, state, spec.training)


def saved_step(run: Run) -> int | None:
    """The step of the newest state in the run's folder."""
    return max((step for step, _ in step_folders(run.folder / "state")), default=None)


def train_on(
    began: ModelInTraining, run: Run, task: Task, spec: RunSpec, step: int
) -> Iterator[int]:
    """Train it up to this step; yields the number of steps done after each.

    Each update uses the settings that were in force for it in the run.
    """
    changed_at = [change.step for change in run.changes()]
    while (now := began.state.step) < step:
        training = training_at(run, spec, now)
        until = min([at for at in changed_at if at > now] + [step])
        updates = train(began.model, partial(task.batch, training=training), training, began.state)
        with steps_between_layers(began.model, began.state.optimizer):
            while began.state.step < until:
                yield next(updates).step


def training_at(run: Run, spec: RunSpec, step: int) -> TrainConfig:
    """The settings that were in force for the update after this step."""
    return spec_at(spec, run.changes(), step).training


def largest_difference(model: Transformer, folder: Path) -> float:
    """The largest difference between a weight and a checkpoint's: 0.0 if all are equal."""
    there = dict(load_checkpoint(folder, merging=False).model.named_parameters())
    return max(
        float((parameter.detach() - there[name].detach()).abs().max())
        for name, parameter in model.named_parameters()
    )
