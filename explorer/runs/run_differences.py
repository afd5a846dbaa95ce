"""What runs are called where several stand side by side: by the settings that tell them apart.

"2 layers, lr 0.003" says more than "induction-14". The same words say how a run departs from
the defaults of its task: "lr 0.001 → 0.003, + warm-up 50".
"""

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from explorer.runs.settings import EVALUATE_EVERY, MODEL_SETTINGS, TRAINING_SETTINGS, WEIGHTS_SEED
from explorer.runs.spec import HOT_VALUES, RunSpec
from explorer.tasks import TASKS
from explorer.text.number_format import three

SHORT_NAMES = {
    "lr": "lr",
    "warmup": "warm-up",
    "batch_size": "batch",
    "n_layers": "layers",
    "n_encoder_layers": "encoder layers",
    "n_heads": "heads",
    "d_ff": "d_ff",
    "beta2": "β₂",
    "eps": "ε",
    "seed": "data seed",
    "weights_seed": "weight seed",
    "stop_at": "target",
    "evaluate_every": "evaluated every",
    "lora_rank": "LoRA rank",
    "lora_alpha": "LoRA α",
    "lora_targets": "LoRA on",
}
WORDS = {setting.field: setting.label.lower() for setting in (*MODEL_SETTINGS, *TRAINING_SETTINGS)}
COUNTED_FIELDS = {"n_layers", "n_encoder_layers", "n_heads", "steps"}
"""Whose number stands before the word: 2 layers."""
NAMED_BY_VALUE = {"positions": "{} positions", "norm": "{} norm", "norm_position": "{}-norm"}
NAMED_BY_VALUE |= {"schedule": "{} schedule", "optimizer": "{}", "activation": "{}"}
NAMED_BY_VALUE |= {"parent": "from {}"}
WITHOUT = {"lora_rank": "whole model"}
"""What is said of one that is nothing, where it is not just absent."""
FOLLOWS = {
    "n_encoder_layers": "n_layers",
    "n_kv_heads": "n_heads",
    "d_head": "n_heads",
    "d_classifier": "d_model",
    "lora_alpha": "lora_rank",
    "lora_targets": "lora_rank",
}
"""A field that may change with another alone, which is then the one that is named."""
UNSET = (0, None, "none", False, "")


def settings_of(spec: RunSpec) -> dict[str, object]:
    """Every setting of a run, by the name of its field: of the model, the training, the run.

    Without adapters it has none of theirs.
    """
    none = () if spec.lora_rank else ("lora_alpha", "lora_targets")
    whole = {field.name: getattr(spec, field.name) for field in dataclasses.fields(spec)}
    return (
        spec.model.to_dict() | spec.training.to_dict() | _without(whole, "model", "training", *none)
    )


def what_differs(specs: Sequence[RunSpec], titles: Sequence[str] = ()) -> list[str]:
    """A name for each, of the settings in which they differ; `titles` tell equal ones apart.

    Runs of several tasks are named by their task, and by how they depart from its defaults.
    """
    every = [settings_of(spec) for spec in specs]
    if len({spec.task for spec in specs}) > 1:
        names = [", ".join([spec.task, *changes(spec)[:3]]) for spec in specs]
    else:
        differing = _differing(every)
        names = [
            ", ".join(said(field, settings[field]) for field in differing if field in settings)
            for settings in every
        ]
    counts = Counter(names)
    told_apart = titles or [str(at) for at in range(1, 1 + len(names))]
    return [
        name if name and counts[name] == 1 else f"{name} · {title}".removeprefix(" · ")
        for name, title in zip(names, told_apart, strict=True)
    ]


def changes(spec: RunSpec, base: RunSpec | None = None) -> list[str]:
    """How a run departs from another, or from the defaults of its task; nothing without one.

    One that starts from a trained model departs by that.
    """
    if base is None and spec.parent:
        return [said("parent", spec.parent), said("lora_rank", spec.lora_rank)]
    task = TASKS.get(spec.task)
    if base is None and task is None:
        return []
    base = base or RunSpec(spec.task, task.model, task.training)  # type: ignore[union-attr]
    before, after = settings_of(base), settings_of(spec)
    return [
        _change(field, before.get(field), after[field]) for field in _differing([before, after])
    ]


def said(field: str, value: object) -> str:
    """One setting in words: 2 layers, lr 0.003, no warm-up, pre-norm."""
    word = _word(field)
    if field in NAMED_BY_VALUE:
        shown = NAMED_BY_VALUE[field].format(_shown(value))
        return shown if value not in UNSET else f"no {word}"
    if field in COUNTED_FIELDS:
        return f"{_shown(value)} {word[:-1] if value == 1 else word}"
    if value in UNSET and "seed" not in field:
        return WITHOUT.get(field, f"no {word}")
    return word if value is True else f"{word} {_shown(value)}"


def _change(field: str, before: object, after: object) -> str:
    if after in UNSET and "seed" not in field and field not in COUNTED_FIELDS:
        return said(field, after)
    if before in UNSET and "seed" not in field:
        return f"+ {said(field, after)}"
    if field in COUNTED_FIELDS:
        return f"{_shown(before)} → {said(field, after)}"
    if field in NAMED_BY_VALUE:
        return f"{said(field, before)} → {said(field, after)}"
    return f"{_word(field)} {_shown(before)} → {_shown(after)}"


def _differing(every: Sequence[Mapping[str, object]]) -> list[str]:
    """The fields that are not the same in all, those that follow from another left out."""
    names = dict.fromkeys(name for settings in every for name in settings)
    found = [name for name in names if len({str(each.get(name)) for each in every}) > 1]
    return [name for name in found if not _follows(every, name, FOLLOWS.get(name))]


def _follows(every: Sequence[Mapping[str, object]], name: str, other: str | None) -> bool:
    """Whether the value of one field gives that of another in all of them."""
    both = {(str(each.get(other)), str(each.get(name))) for each in every if other}
    others = {of_other for of_other, _ in both}
    return 1 < len(others) == len(both)


def _word(field: str) -> str:
    return SHORT_NAMES.get(field) or WORDS.get(field, field.replace("_", " "))


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _without(values: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


LABELS = {
    each.field: each.label
    for each in (*MODEL_SETTINGS, *TRAINING_SETTINGS, EVALUATE_EVERY, WEIGHTS_SEED)
} | {"stop_at": "Target"}


@dataclass(frozen=True)
class Difference:
    """One setting, by its field, with its two values."""

    field: str
    before: Any
    after: Any

    @property
    def is_hot(self) -> bool:
        """Whether a run takes it on as it trains."""
        return self.field in HOT_VALUES

    @property
    def words(self) -> str:
        """`layers 1 → 2`."""
        label = LABELS.get(self.field, self.field)
        label = label[0].lower() + label[1:]
        return f"{label} {in_words(self.before)} → {in_words(self.after)}"


def differences(before: RunSpec, after: RunSpec) -> list[Difference]:
    """Every setting in which `after` is not as `before`."""
    plain = [
        each.model.to_dict()
        | each.training.to_dict()
        | {name: value for name, value in each.to_dict().items() if name in SCALARS}
        for each in (before, after)
    ]
    return [
        Difference(name, was, plain[1][name])
        for name, was in plain[0].items()
        if was != plain[1][name]
    ]


SCALARS = ("weights_seed", "stop_at", "evaluate_every")


def in_words(value: Any) -> str:
    """A value of a setting as a sentence has it."""
    if value is None:
        return "none"
    return three(value) if isinstance(value, float) else str(value)
