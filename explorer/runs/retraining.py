"""A run trained again, in memory: its weights with the optimizer's state, at any of its steps.

A snapshot holds weights alone, and the folder keeps the optimizer's state of the newest step only.
But a training is a function of its settings, so whoever trains it again from its beginning has
both, and can compare the weights with the snapshot's.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from explorer.runs.run import Run, step_folders
from explorer.runs.spec import RunSpec
from explorer.tasks import Task
from models import Transformer, load_checkpoint
from models.loading.checkpoint import load_state
from models.training import TrainState, train


@dataclass(frozen=True, eq=False)
class Trained:
    """A model with the state of its training; both change when it is trained on."""

    model: Transformer
    state: TrainState

    @property
    def bytes(self) -> int:
        kept = [each for memory in self.state.optimizer.state.values() for each in memory.values()]
        return sum(each.nbytes for each in [*self.model.parameters(), *kept])

    def copy(self) -> Trained:
        """The same, to be trained without changing this one."""
        return copy.deepcopy(self)


def untrained(spec: RunSpec) -> Trained:
    """The run before its first update."""
    model = Transformer(spec.model, seed=spec.weights_seed)
    return Trained(model, TrainState.fresh(model, spec.training))


def saved(run: Run, spec: RunSpec) -> Trained | None:
    """The newest state that the run's folder keeps, from which it would resume."""
    for _, folder in reversed(step_folders(run.folder / "state")):
        try:
            model = load_checkpoint(folder).model
            return Trained(model, load_state(folder, model, spec.training))
        except (OSError, ValueError):
            continue
    return None


def from_snapshot(folder: Path, step: int, spec: RunSpec) -> Trained:
    """The weights of a snapshot with the state of an optimizer that has done nothing yet."""
    model = load_checkpoint(folder).model
    state = TrainState.fresh(model, spec.training)
    state.step = step
    return Trained(model, state)


def saved_step(run: Run) -> int | None:
    """The step of that state."""
    return max((step for step, _ in step_folders(run.folder / "state")), default=None)


def trained_on(began: Trained, task: Task, spec: RunSpec, step: int) -> Iterator[int]:
    """Train it up to this step, with the number of steps done after each."""
    training = spec.training
    updates = train(began.model, lambda at: task.batch(at, training), training, began.state)
    while began.state.step < step:
        yield next(updates).step


def largest_difference(model: Transformer, folder: Path) -> float:
    """The largest difference of a weight from that of a checkpoint: 0.0 where all are equal."""
    there = dict(load_checkpoint(folder).model.named_parameters())
    return max(
        float((each.detach() - there[name].detach()).abs().max())
        for name, each in model.named_parameters()
    )
