"""A run trained again, in memory: its weights with the optimizer's state, at any of its steps.

A snapshot holds weights alone, and the folder keeps the optimizer's state of the newest step only.
But a training is a function of its settings, so whoever trains it again from its beginning has
both, and can compare the weights with the snapshot's.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from explorer.runs.finetuning import beginning
from explorer.runs.hot_changes import spec_at
from explorer.runs.run import Run, step_folders
from explorer.runs.spec import RunSpec
from explorer.tasks import Task
from models import Transformer, load_checkpoint
from models.config import TrainConfig
from models.loading.checkpoint import load_state
from models.training import TrainState, train


@dataclass(frozen=True, eq=False)
class Trained:
    """A model with the state of its training; both change when it is trained on."""

    model: Transformer
    state: TrainState
    training: TrainConfig

    @property
    def bytes(self) -> int:
        kept = [each for memory in self.state.optimizer.state.values() for each in memory.values()]
        return sum(each.nbytes for each in [*self.model.parameters(), *kept])

    def copy(self) -> "Trained":
        """The same, to be trained without changing this one."""
        model = copy.deepcopy(self.model)
        state = TrainState.fresh(model, self.training)
        state.step = self.state.step
        # An optimizer cannot be copied as it is: Muon's loses the two that it consists of.
        for ours, theirs in zip(self.model.parameters(), model.parameters(), strict=True):
            if memory := self.state.optimizer.state.get(ours):
                state.optimizer.state[theirs] = {
                    name: each.clone() for name, each in memory.items()
                }
        return Trained(model, state, self.training)


def untrained(run: Run, spec: RunSpec) -> Trained:
    """The run before its first update."""
    model = beginning(run.folder, spec)
    return Trained(model, TrainState.fresh(model, spec.training), spec.training)


def saved(run: Run, spec: RunSpec) -> Trained | None:
    """The newest state that the run's folder keeps, from which it would resume."""
    for _, folder in reversed(step_folders(run.folder / "state")):
        try:
            model = load_checkpoint(folder, merging=False).model
            return Trained(model, load_state(folder, model, spec.training), spec.training)
        except (OSError, ValueError):
            continue
    return None


def from_snapshot(folder: Path, step: int, spec: RunSpec) -> Trained:
    """The weights of a snapshot with the state of an optimizer that has done nothing yet."""
    model = load_checkpoint(folder, merging=False).model
    state = TrainState.fresh(model, spec.training)
    state.step = step
    return Trained(model, state, spec.training)


def saved_step(run: Run) -> int | None:
    """The step of that state."""
    return max((step for step, _ in step_folders(run.folder / "state")), default=None)


def trained_on(began: Trained, run: Run, task: Task, spec: RunSpec, step: int) -> Iterator[int]:
    """Train it up to this step, with the number of steps done after each.

    With the settings that were in force for each update, as the run has taken them on.
    """
    changed_at = [each.step for each in run.changes()]
    while (now := began.state.step) < step:
        training = training_at(run, spec, now)
        until = min([at for at in changed_at if at > now] + [step])
        updates = train(began.model, partial(task.batch, training=training), training, began.state)
        while began.state.step < until:
            yield next(updates).step


def training_at(run: Run, spec: RunSpec, step: int) -> TrainConfig:
    """The settings that were in force for the update after this step."""
    return spec_at(spec, run.changes(), step).training


def largest_difference(model: Transformer, folder: Path) -> float:
    """The largest difference of a weight from that of a checkpoint: 0.0 where all are equal."""
    there = dict(load_checkpoint(folder, merging=False).model.named_parameters())
    return max(
        float((each.detach() - there[name].detach()).abs().max())
        for name, each in model.named_parameters()
    )
