"""Several runs of one task at once: a grid of settings, or a race that is ready to start.

The runs of a sweep share a key in their notes, and are found by it again.
"""

import itertools
import math
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from explorer.catalog.opened_model import OpenModel
from explorer.runs.finetuning import finetune_spec, fitted
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
from explorer.tasks import Task


@dataclass(frozen=True)
class Race:
    """A sweep that shows one thing. `says` tells what to watch."""

    title: str
    task: str
    says: str
    values: Mapping[str, Sequence[Any]]
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What all its runs have, besides the defaults of the task."""


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
)


def grid(
    task: Task,
    values: Mapping[str, Sequence[Any]],
    settings: Mapping[str, Any] | None = None,
    parent: OpenModel | None = None,
) -> list[RunSpec]:
    """A run for every combination of these values of the settings, the last one varying fastest.

    `settings` are those that all share, `parent` the model that they start from, if any. Without
    adapters there is no α, and without a new head too no seed of weights, so neither makes another
    run. RunError, in one sentence, where they are too many, where there is nothing to compare, or
    where one of them cannot be trained.
    """
    known = TUNED_SETTINGS if parent else SETTINGS
    if strange := next((name for name in values if name not in known), None):
        raise RunError(
            f"{SETTINGS[strange].label} is that of the model to start from: leave it out."
            if parent
            else "LoRA adapts a model that was trained before: choose one to start from."
        )
    values = {name: tuple(dict.fromkeys(each)) for name, each in values.items() if each}
    count = math.prod(len(each) for each in values.values())
    if not limits.SWEEP_RUNS.allows(count):
        raise RunError(limits.SWEEP_RUNS.refusal(count))
    combined = [
        {**(settings or {}), **dict(zip(values, each, strict=True))}
        for each in itertools.product(*values.values())
    ]
    keeps_head = parent is not None and fitted(parent.config, task) == parent.config
    for each in combined:
        if not each.get("lora_rank"):
            each.pop("lora_alpha", None)
            if keeps_head:  # the seed is that of a new head and of adapters
                each.pop("weights_seed", None)
    distinct = {tuple(each.items()): each for each in combined}.values()
    if len(distinct) < 2:
        raise RunError("A sweep needs two values of one setting at least.")
    if parent:
        return [finetune_spec(parent, task, each) for each in distinct]
    return [spec_of(task, each) for each in distinct]


def notes_of(title: str) -> RunNotes:
    """What the runs of a new sweep have in common."""
    return RunNotes(sweep=secrets.token_hex(6), sweep_title=title[:LONGEST_TITLE])


def title_of(values: Mapping[str, Sequence[Any]]) -> str:
    """What a sweep over these values is called, such as "lr 0.001, 0.003 × layers 1, 2"."""
    distinct = {
        SHORT_NAMES.get(name, name.replace("_", " ")): dict.fromkeys(each)
        for name, each in values.items()
    }
    several = {name: each for name, each in distinct.items() if len(each) > 1}
    return " × ".join(f"{name} {', '.join(map(_shown, each))}" for name, each in several.items())


def by_sweep(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """The runs of each sweep by its key, in the order in which they were made; newest sweep first.

    The runs are given the newest first.
    """
    found: dict[str, list[Run]] = {}
    for run in runs:
        if key := run.notes().sweep:
            found.setdefault(key, []).insert(0, run)
    return found


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


SETTINGS = {each.name: each for each in (*MODEL_SETTINGS, *TRAINING_SETTINGS, WEIGHTS_SEED)}
"""What can have several values, by its name."""
TUNED_SETTINGS = {each.name: each for each in (*LORA_SETTINGS, *TRAINING_SETTINGS, WEIGHTS_SEED)}
"""The same where all start from a trained model."""
MOST_VALUES = 100


def parsed(setting: Setting, text: str) -> list[Any]:
    """The values in a text with commas between them. RunError names one that is none."""
    found = list[Any]()
    for word in (part.strip() for part in text.split(",")[:MOST_VALUES]):
        if not word:
            continue
        if setting.options:
            if word not in setting.options:
                options = ", ".join(setting.options)
                raise RunError(f"{setting.label} has no {word[:30]!r}; it is one of {options}.")
            found.append(word)
            continue
        try:
            number = float(word)
            found.append(number if setting.format else _whole(number))
        except (ValueError, OverflowError) as error:
            kind = "a number" if setting.format else "a whole number"
            raise RunError(f"{setting.label} needs {kind}, not {word[:30]!r}.") from error
    return found


def _whole(number: float) -> int:
    if number != int(number):
        raise ValueError("not whole")
    return int(number)
