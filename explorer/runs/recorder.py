"""Write a run's folder while it trains: metrics, status, snapshots, states.

Weights are worth keeping if their loss is not much worse than that of a uniform guess, ln V for a
vocabulary of V tokens or V classes: an untrained model is at most a few times as bad.
"""

import math
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from explorer.catalog.pass_budget import steps_between_layers
from explorer.catalog.run_index import step_folders
from explorer.runs.finetuning import PARENT, linked_files, record_of
from explorer.runs.metrics import MetricsRow, MetricsWriter, cut_after
from explorer.runs.quotas import closing_bytes
from explorer.runs.run import Run, step_folder
from explorer.runs.run_size import measured_rows
from explorer.runs.spec import DONE, STOPPED, TRAINING, WAITING, RunSpec, Status
from explorer.system import cooperative
from explorer.system.atomic_files import write_json, write_text
from explorer.system.cooperative import Breakable, BrokenOff
from explorer.system.pace import Pace, Speed, is_snapshot_step
from explorer.tasks import Task
from explorer.tasks.task_metrics import by_parts
from explorer.text.number_format import three
from models import Transformer, TransformerConfig, save_checkpoint
from models.training import Batch, Report, TrainState, batch_loss
from models.transformer import evaluating

POOR, LOST = 20, 1_000
"""Multiples of the loss of a guess. POOR weights are not saved; LOST ones never recover."""
STEPS_OF_PATIENCE = 50
"""Updates in a row after which a poor model counts as lost, too."""
CHECKED_PARTS, MOST_CHECKED = 8, 64
"""One of so many parts of a batch is checked before weights are saved, of so many rows at most."""
LAST_SECONDS = 0.5
"""Seconds for the last measurement of a run that ends between two of them."""
TOLD_SECONDS = 1.0
"""A measurement that takes longer tells how far it is."""

Tell = Callable[[int, int], None]
"""Is told, during a measurement, the rows that are read and those that it reads in all."""


class Diverged(ArithmeticError):
    """The training diverged; the message says at which step."""


class Health:
    """Detects by its losses that a training has diverged."""

    def __init__(self, config: TransformerConfig) -> None:
        is_classifier = config.head == "classifier"
        self.guess = math.log(max(2, config.n_classes if is_classifier else config.vocab_size))
        self._poor_for = 0

    def after(self, report: Report) -> None:
        """Raise Diverged if the model was lost before this update."""
        is_poor = not report.loss <= POOR * self.guess
        self._poor_for = self._poor_for + 1 if is_poor else 0
        is_finite = math.isfinite(report.loss) and math.isfinite(report.grad_norm)
        if is_finite and report.loss <= LOST * self.guess and self._poor_for < STEPS_OF_PATIENCE:
            return
        symptom = f"the loss is {three(report.loss)}" if is_finite else "the loss is not finite"
        if math.isfinite(report.loss) and not is_finite:
            symptom = "the gradients are not finite"
        raise Diverged(
            f"The training diverged: {symptom} at step {report.step:,}, while guessing "
            f"uniformly would give {three(self.guess)}"
        )

    def is_good(self, model: Transformer, batch: Batch) -> bool:
        """Whether weights are worth keeping: finite, and not poor on a part of this batch."""
        if not is_finite(model):
            return False
        rows = min(MOST_CHECKED, -(-len(batch.labels) // CHECKED_PARTS))
        part = batch.rows(slice(rows)).to(next(model.parameters()).device)
        with evaluating(model):
            loss = batch_loss(model, part).item()
        return loss <= POOR * self.guess


def is_finite(model: nn.Module) -> bool:
    """Whether every weight is finite. Cost: one read of the weights."""
    sums = torch.stack([parameter.detach().sum() for parameter in model.parameters()])
    return bool(sums.isfinite().all())


@dataclass(frozen=True)
class TrainingProgress:
    """One update: its report, and the status of the run after it."""

    report: Report
    status: Status


class RunRecorder:
    """Writes one run, for the one worker that trains it."""

    def __init__(
        self,
        run: Run,
        spec: RunSpec,
        task: Task,
        model: Transformer,
        state: TrainState,
        tell: Tell = lambda read, rows: None,
    ) -> None:
        self.run, self.spec, self.task = run, spec, task
        self.model, self.state, self.tell = model, state, tell
        self.rows, self.is_broken_off = measured_rows(task, spec), False
        self.kept_at = -1
        self.health = Health(spec.model)
        self.reserve = closing_bytes(spec)
        self.parents = record_of(run.folder / PARENT, spec)
        self.linked = linked_files(run.folder / PARENT, spec)
        self.tokenizer = None if self.linked else task.tokenizer.to_json()
        self.status = run.status_or_new().replace(
            state=TRAINING, step=state.step, steps=spec.training.steps, message=""
        )
        # After a kill, steps later than the saved state are undone.
        if (self.status.measured_at or 0) > state.step:
            self.status = self.status.replace(value=None, measured_at=None)
        cut_after(run.folder / "metrics.jsonl", state.step)
        self.metrics = MetricsWriter(run.folder / "metrics.jsonl")
        self.speed = Speed(state.step)
        self.earlier_seconds = self.status.seconds
        self.began = time.monotonic()
        # With the watchdog's, at most 4 % of the time; landmarks come on top, and become rare.
        self.showing = Pace(every=0.25, share=0.005)
        self.measuring = Pace(every=0.0, share=0.01)
        self.refreshing = Pace(every=1.0, share=0.01)
        self.keeping = Pace(every=5.0, share=0.01)

    def begin(self) -> None:
        """Write the status, and the model before the first update."""
        if self.run.is_private:
            write_text(self.run.folder / "example", self.task.example)
        self._show()
        if self.state.step == 0:
            self._keep()  # from now on, a run without a state has lost it
            if self._measure():
                self.metrics.add(MetricsRow(0, value=self.status.value, seconds=0.0))
            self._snapshot()
        self._show()

    def record(self, report: Report, evaluate_every: int = 0) -> TrainingProgress:
        """Record one update; measure and save if that is due.

        With `evaluate_every` 0, it measures held-out data as often as its share of time allows.
        """
        self.status = self.status.replace(step=report.step, loss=report.loss)
        is_last = report.step >= self.spec.training.steps
        is_landmark = is_snapshot_step(report.step) or is_last
        is_its_turn = (
            report.step % evaluate_every == 0 if evaluate_every else self.measuring.is_due()
        )
        is_measured = is_landmark or is_its_turn
        row = MetricsRow(
            report.step, report.loss, report.lr, report.grad_norm, seconds=round(self.seconds, 3)
        )
        if report.step == 1:  # whoever started the run waits for this step
            self.metrics.add(row)
            self._show()
            row = MetricsRow(1, seconds=row.seconds)
        if is_measured and self._measure():
            row = replace(row, value=self.status.value)
        self.metrics.add(row)
        if is_landmark and self.is_good():
            self._snapshot()
        elif self.refreshing.is_due():
            with self.refreshing.timed():
                if self.is_good():
                    self._refresh()
        if self.keeping.is_due():
            with self.keeping.timed():
                if self.is_good():
                    self._keep()
        if self.showing.is_due():
            with self.showing.timed():
                self._show()
        return TrainingProgress(report, self.status)

    @property
    def has_reached_target(self) -> bool:
        target, value = self.spec.stop_at, self.status.value
        if target is None or value is None or self.state.step == 0:
            return False
        return value >= target if self.task.higher_is_better else value <= target

    def end(self, state: str, message: str = "") -> Status:
        """Save the state for a resume and the current model, and write the final status.

        Lost weights are not saved: the weights saved before are those that open and resume.
        """
        until = time.monotonic() + LAST_SECONDS
        is_late = Breakable(lambda: STOPPED if time.monotonic() > until else None)
        with cooperative.run_in_thread(is_late):
            is_old = self.status.measured_at != self.state.step
            if is_old and not self.is_broken_off and self._measure():
                now = round(self.seconds, 3)
                self.metrics.add(MetricsRow(self.state.step, value=self.status.value, seconds=now))
        if self.is_good():
            self._keep()
            self._refresh()
            if state != WAITING:
                self._save(self.run.folder / "checkpoint", is_finished=state == DONE)
        self._show(state, message)
        self.metrics.close()
        return self.status

    @property
    def seconds(self) -> float:
        """Seconds for which the run has been trained, in all its sessions."""
        return self.earlier_seconds + time.monotonic() - self.began

    def is_good(self) -> bool:
        """Whether the current weights are worth keeping, by the batch of the next update."""
        batch = self.task.batch(self.state.step, training=self.spec.training)
        return self.health.is_good(self.model, batch)

    def _keep(self) -> None:
        """Save the state for a resume; the previous state stays until this one is complete."""
        if self.kept_at == self.state.step:
            return
        self._save(step_folder(self.run.folder / "state", self.state.step), state=self.state)
        _drop_all_but(self.run.folder / "state", 1)
        self.kept_at = self.state.step

    def _measure(self) -> bool:
        """Measure the held-out rows; False, and the status as it was, if that is broken off."""
        was_training, began = self.model.training, time.monotonic()
        (name, metric), sample = self.task.metric, self.task.held_out_sample(self.rows)
        try:
            with self.measuring.timed(), steps_between_layers(self.model):
                for read, so_far in by_parts(metric, self.model, sample):
                    value = so_far
                    if time.monotonic() - began > TOLD_SECONDS:
                        self._tell(read)
        except BrokenOff:
            self.is_broken_off = True
            return False
        finally:
            self.model.train(was_training)
        self.status = self.status.replace(
            measure=name,
            value=value if math.isfinite(value) else None,
            measured_at=self.state.step,
            measured_rows=self.rows,
            held_out_rows=len(self.task.held_out_batch.labels),
        )
        return True

    def _tell(self, read: int) -> None:
        self.tell(read, self.rows)
        if self.showing.is_due():
            with self.showing.timed():
                self._show(message=f"Measuring {self.rows:,} held-out rows: {read:,}")

    def _snapshot(self) -> None:
        self._save(step_folder(self.run.folder / "snapshots", self.state.step))

    def _refresh(self) -> None:
        self._save(step_folder(self.run.folder / "latest", self.state.step))
        _drop_all_but(self.run.folder / "latest", 2)

    def _save(
        self, folder: Path, state: TrainState | None = None, is_finished: bool = False
    ) -> None:
        if folder.parent != self.run.folder:  # a deleted run's folder is not made again
            folder.parent.mkdir(mode=0o700, exist_ok=True)
        save_checkpoint(
            folder,
            self.model,
            tokenizer=self.tokenizer,
            run=self._training_record(is_finished),
            state=state,
            private=True,
            linked=self.linked,
        )

    def _show(self, state: str = TRAINING, message: str = "") -> None:
        self.metrics.flush()
        self.status = self.status.replace(
            state=state,
            message=message,
            seconds=self.seconds,
            steps_per_second=self.speed.update(self.state.step) if state == TRAINING else 0.0,
        )
        write_json(self.run.folder / "status.json", self.status.to_dict())

    def _training_record(self, is_finished: bool) -> dict[str, Any]:
        """The contents of `run.json`, enough to train the weights again.

        Weights of an unfinished run have their step in the title; `measured_at` is the step of the
        metric. A link may share the model, so the record has no word of a private text.
        """
        name, bundled = self.run.title, self.run.bundled
        return {
            "title": name if is_finished else f"{name} at step {self.state.step:,}",
            "task": self.spec.task,
            "example": None if self.run.is_private else self.task.example,
            "classes": list(self.task.classes),
            **self.parents,
            "data": {"attribution": bundled.attribution} if bundled else {},
            "held_out": self.task.held_out,
            "weights_seed": self.spec.weights_seed,
            "training": self.spec.training.to_dict(),
            "changes": [{"step": change.step, **change.values} for change in self.run.changes()],
            "steps": self.state.step,
            "loss": self.status.loss,
            "is_finished": is_finished,
            "metrics": {self.status.measure: self.status.value},
            "measured_at": self.status.measured_at,
        }


def _drop_all_but(folder: Path, newest: int) -> None:
    for _, old in step_folders(folder)[:-newest]:
        shutil.rmtree(old, ignore_errors=True)
