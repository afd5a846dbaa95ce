"""Several runs of one task at once: a grid of settings, or a race that is ready to start.

The runs of a sweep share a key in their notes, by which the app finds them again.
"""

import itertools
import math
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from explorer.catalog.opened_model import OpenModel
from explorer.runs.finetuning import config_for, finetune_spec
from explorer.runs.run import Run
from explorer.runs.run_differences import SHORT_NAMES
from explorer.runs.settings import (
    LORA_SETTINGS,
    MODEL_SETTINGS,
    TRAINING_SETTINGS,
    WEIGHTS_SEED,
    Setting,
    spec_of,
)
from explorer.runs.spec import LONGEST_TITLE, RunError, RunNotes, RunSpec
from explorer.system import limits
from explorer.tasks import Task, task_of


@dataclass(frozen=True)
class Race:
    """A sweep that shows one thing, which `about` explains: a grid of `values`, or the `twins`."""

    title: str
    task: str
    about: str
    values: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings that all its runs share, besides the defaults of the task."""
    twins: Sequence[Mapping[str, Any]] = ()
    """The own settings of each run."""

    @property
    def specs(self) -> list[RunSpec]:
        """The runs; RunError says why one cannot be trained."""
        task = task_of(self.task)
        if self.twins:
            return [spec_of(task, {**self.settings, **twin}) for twin in self.twins]
        return grid(task, self.values, self.settings)


RACES = (
    Race(
        "One layer against two",
        "induction",
        "Copying what followed an earlier occurrence takes two heads, one after the other: a "
        "single layer cannot compose them.",
        {"layers": (1, 2)},
    ),
    Race(
        "With positions against without",
        "translation",
        "Without positions the encoder reads a bag of words, so it cannot tell which noun an "
        "adjective belongs to.",
        {"positions": ("sinusoidal", "none")},
    ),
    Race(
        "Pre-norm against post-norm",
        "translation",
        "Pre-norm keeps the residual stream free of norms, so the gradient has a direct path to "
        "every layer; post-norm needs a warm-up where the learning rate is large.",
        {"norm_position": ("pre", "post")},
        {"layers": 4, "warmup": 0},
    ),
    Race(
        "Sinks against ways to attend to nothing",
        "backcopy",
        "A head with nothing to do attends to the first token: about two thirds of its weight "
        "after 300 steps. With a learned logit in its softmax, or a gate of its output, it attends "
        "to nothing: at most 0.01. Watch the third chart.",
        twins=({}, {"sink_logit": True}, {"gated_attention": True}),
    ),
)


def grid(
    task: Task,
    values: Mapping[str, Sequence[Any]],
    settings: Mapping[str, Any] | None = None,
    parent: OpenModel | None = None,
) -> list[RunSpec]:
    """A run for every combination of these values of the settings, the last one varying fastest.

    The runs share `settings`, and start from `parent` if there is one. A run without adapters has
    no α, and one without a new head either has no weight seed, so neither makes another run.
    RunError says in one sentence that the runs are too many, that there is nothing to compare, or
    that one of them cannot be trained.
    """
    possible = TUNED_SETTINGS if parent else SETTINGS
    if unknown := next((name for name in values if name not in possible), None):
        raise RunError(
            f"{SETTINGS[unknown].label} is that of the model to start from: leave it out."
            if parent
            else "LoRA adapts a model that was trained before: choose one to start from."
        )
    values = {name: tuple(dict.fromkeys(several)) for name, several in values.items() if several}
    count = math.prod(len(several) for several in values.values())
    limits.SWEEP_RUNS.check(count, RunError)
    combinations = [
        {**(settings or {}), **dict(zip(values, combination, strict=True))}
        for combination in itertools.product(*values.values())
    ]
    keeps_head = parent is not None and config_for(parent.config, task) == parent.config
    for combination in combinations:
        if not combination.get("lora_rank"):
            combination.pop("lora_alpha", None)
            if keeps_head:  # the seed is that of a new head and of adapters
                combination.pop("weights_seed", None)
    distinct = {tuple(combination.items()): combination for combination in combinations}.values()
    if len(distinct) < 2:
        raise RunError("A sweep needs at least two values of one setting.")
    if parent:
        return [finetune_spec(parent, task, combination) for combination in distinct]
    return [spec_of(task, combination) for combination in distinct]


def notes_of(title: str) -> RunNotes:
    """The notes that the runs of a new sweep share."""
    return RunNotes(sweep=secrets.token_hex(6), sweep_title=title[:LONGEST_TITLE])


def title_of(values: Mapping[str, Sequence[Any]]) -> str:
    """The title of a sweep over these values, such as "lr 0.001, 0.003 × layers 1, 2"."""
    distinct = {
        SHORT_NAMES.get(name, name.replace("_", " ")): dict.fromkeys(several)
        for name, several in values.items()
    }
    return " × ".join(
        f"{name} {', '.join(map(_text_of, several))}"
        for name, several in distinct.items()
        if len(several) > 1
    )


def by_sweep(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """The runs of each sweep by its key, in the order in which they were made; newest sweep first.

    `runs` has the newest run first.
    """
    sweeps: dict[str, list[Run]] = {}
    for run in runs:
        if key := run.notes().sweep:
            sweeps.setdefault(key, []).insert(0, run)
    return sweeps


def _text_of(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


SETTINGS = {
    setting.name: setting for setting in (*MODEL_SETTINGS, *TRAINING_SETTINGS, WEIGHTS_SEED)
}
"""The settings that can have several values, by their names."""
TUNED_SETTINGS = {
    setting.name: setting for setting in (*LORA_SETTINGS, *TRAINING_SETTINGS, WEIGHTS_SEED)
}
"""The same for runs that start from a trained model."""
MOST_VALUES = 100


def parse_values(setting: Setting, text: str) -> list[Any]:
    """The values in a text with commas between them. RunError names one that is invalid."""
    words = filter(None, (part.strip() for part in text.split(",")[:MOST_VALUES]))
    return [_parse_value(setting, word) for word in words]


def _parse_value(setting: Setting, word: str) -> Any:
    if options := ("true", "false") if setting.is_switch else setting.options:
        if word not in options:
            names = ", ".join(options)
            raise RunError(f"{setting.label} has no {word[:30]!r}; it is one of {names}.")
        return word == "true" if setting.is_switch else word
    with suppress(ValueError):
        number = float(word)
        if setting.format:
            return number
        if number.is_integer():
            return int(number)
    kind = "a number" if setting.format else "a whole number"
    raise RunError(f"{setting.label} needs {kind}, not {word[:30]!r}.")
