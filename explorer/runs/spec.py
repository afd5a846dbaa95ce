"""The settings of a run, its status and a reader's notes: plain data, one JSON file each."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from explorer.catalog import in_a_sentence
from explorer.system.atomic_files import read_json_or_empty, write_json
from models.config import TrainConfig, TransformerConfig
from models.config_fields import PlainData, choice_field, number_field
from models.loading.adapter_settings import LARGEST_ALPHA
from models.lora import USUAL_TARGETS, add_lora, lora_fault
from models.model import Transformer

WAITING, TRAINING, PAUSED, STOPPED = "waiting", "training", "paused", "stopped"
DONE, FAILED, INTERRUPTED = "done", "failed", "interrupted"
STATES = (WAITING, TRAINING, PAUSED, STOPPED, DONE, FAILED, INTERRUPTED)

DAMAGED = "damaged"
"""The state of a run that cannot be read."""

ACTIVE = (WAITING, TRAINING)
"""States in which a worker trains the run, or will without another command."""

RESUMABLE = (PAUSED, STOPPED, FAILED, INTERRUPTED)

LARGEST_SEED = 2**31 - 1
SMALLEST_ALPHA = 1e-6
LARGEST_FLOAT32 = (2 - 2**-23) * 2.0**127
MOST_STEPS = 10_000_000

HOT = ("lr", "clip", "label_smoothing")
"""Training settings that may change between two steps: no saved state depends on them."""
HOT_VALUES = (*HOT, "evaluate_every")
"""Settings that may change while a run trains."""

MEASURE = re.compile(r"[A-Za-z][A-Za-z0-9 -]{0,39}|")
"""The name of a metric, which the page draws as Markdown."""


@dataclass(frozen=True)
class RunSpec(PlainData):
    """Everything that determines a training run, except a text of the reader's own.

    `training.seed` is the seed of the data, `weights_seed` that of the initial weights.
    `stop_at` ends the run at the first held-out metric that is as good. Held-out data is
    measured every `evaluate_every` steps and at each snapshot; with 0 as often as its share of
    time allows. `parent` names the model that it starts from, whose weights are in the run's
    folder; a `lora_rank` of 0 trains the whole model.
    """

    task: str
    model: TransformerConfig
    training: TrainConfig
    weights_seed: int = number_field(0, 0, LARGEST_SEED)
    stop_at: float | None = number_field(None, -LARGEST_FLOAT32, LARGEST_FLOAT32)
    evaluate_every: int = number_field(0, 0, MOST_STEPS)
    parent: str = ""
    lora_rank: int = number_field(0, 0, MOST_STEPS)
    lora_alpha: float = number_field(16.0, SMALLEST_ALPHA, LARGEST_ALPHA)
    lora_targets: tuple[str, ...] = USUAL_TARGETS

    def adapt(self, model: Transformer) -> Transformer:
        """Freeze the parent in place, except for new adapters and the head of a classifier."""
        whole = ("head",) if self.model.head == "classifier" else ()
        return add_lora(
            model, self.lora_rank, self.lora_alpha, self.lora_targets, self.weights_seed, whole
        )

    @property
    def hot(self) -> dict[str, Any]:
        """The settings that may change while it trains."""
        training = {name: getattr(self.training, name) for name in HOT}
        return training | {"evaluate_every": self.evaluate_every}

    def with_hot(self, values: Mapping[str, Any]) -> "RunSpec":
        """A copy with these values of settings that may change while it trains."""
        training = {name: value for name, value in values.items() if name in HOT}
        every = values.get("evaluate_every", self.evaluate_every)
        return self.replace(training=self.training.replace(**training), evaluate_every=every)

    def fault(self) -> str | None:
        """A sentence that says why this cannot be run; None if it can."""
        if not self.task:
            return "A run needs the name of a task."
        for part in (self.model, self.training):
            if isinstance(part, PlainData) and (why := part.fault()):
                return why
        if why := super().fault():
            return why
        if self.lora_rank and not self.parent:
            return "LoRA adapts a model that was trained before: choose one to start from."
        if self.lora_rank and (why := lora_fault(self.model, self.lora_rank, self.lora_targets)):
            return why
        if self.model.score_function != "softmax":
            return "Training chooses one class of several: problem_type and n_classes must fit."
        return None


@dataclass(frozen=True)
class Status(PlainData):
    """The status of a run. `value` is the newest held-out metric, of the weights at step
    `measured_at`, over `measured_rows` of the `held_out_rows`.
    """

    state: str = choice_field(WAITING, STATES)
    step: int = number_field(0, 0, MOST_STEPS)
    steps: int = number_field(0, 0, MOST_STEPS)
    loss: float | None = number_field(None, -LARGEST_FLOAT32, LARGEST_FLOAT32)
    measure: str = ""
    value: float | None = number_field(None, -LARGEST_FLOAT32, LARGEST_FLOAT32)
    measured_at: int | None = number_field(None, 0, MOST_STEPS)
    measured_rows: int = number_field(0, 0, MOST_STEPS)
    held_out_rows: int = number_field(0, 0, MOST_STEPS)
    steps_per_second: float = number_field(0.0, -LARGEST_FLOAT32, LARGEST_FLOAT32)
    seconds: float = number_field(0.0, -LARGEST_FLOAT32, LARGEST_FLOAT32)
    message: str = ""

    @property
    def held_out(self) -> str:
        """The held-out data that the value is over, in words."""
        if self.measured_rows >= self.held_out_rows:
            return "held-out data"
        return f"{self.measured_rows:,} of {self.held_out_rows:,} held-out rows"

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

    def fault(self) -> str | None:
        is_named = isinstance(self.measure, str) and MEASURE.fullmatch(self.measure)
        return super().fault() or (None if is_named else "measure is no name of a metric.")


def is_step(value: object) -> TypeGuard[int]:
    """Whether a run can have this step, or so many steps."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_STEPS


def is_float32(value: object) -> TypeGuard[float]:
    """Whether it is a finite number that float32 can hold."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return abs(value) <= LARGEST_FLOAT32


class RunError(ValueError):
    """A run cannot be made or read; the message is one sentence."""

    @classmethod
    def of(cls, error: OSError, sentence: str) -> "RunError":
        """An error with the reason of an OSError, without the path on this machine."""
        return cls(f"{sentence}. {in_a_sentence(error)}")


NOTES_FILE = "notes.json"
MOST_TAGS, LONGEST_TAG, LONGEST_NOTE, LONGEST_TITLE = 8, 24, 1_000, 80
SWEEP = re.compile(r"[0-9a-f]{12}|")


@dataclass(frozen=True)
class RunNotes(PlainData):
    """A reader's notes of a run; `sweep` is the key that the runs of one sweep share."""

    tags: tuple[str, ...] = ()
    note: str = ""
    sweep: str = ""
    sweep_title: str = ""

    def fault(self) -> str | None:
        if fault := super().fault():
            return fault
        is_short = len(self.note) <= LONGEST_NOTE and len(self.sweep_title) <= LONGEST_TITLE
        is_known = self.tags == as_tags(self.tags) and SWEEP.fullmatch(self.sweep)
        return None if is_short and is_known else "The notes are too long or name no sweep."


def notes_in(folder: Path) -> RunNotes:
    """The notes in a run's folder; empty if damaged, so that the run can still be listed."""
    try:
        return RunNotes.from_dict(read_json_or_empty(folder / NOTES_FILE))
    except ValueError:
        return RunNotes()


def write_notes(folder: Path, notes: RunNotes) -> None:
    """Replace the notes in a run's folder. OSError if they cannot be written."""
    short = notes.replace(tags=as_tags(notes.tags), note=notes.note[:LONGEST_NOTE])
    write_json(folder / NOTES_FILE, short.to_dict())


def as_tags(words: Iterable[object]) -> tuple[str, ...]:
    """These words as tags: shortened, without duplicates, as many as a run may have."""
    short = (" ".join(str(word).split())[:LONGEST_TAG] for word in words)
    return tuple(dict.fromkeys(word for word in short if word))[:MOST_TAGS]
