"""The names of runs where several are compared: the settings in which they differ.

"2 layers, lr 0.003" says more than "induction-14". The same words describe how a run differs from
the defaults of its task: "lr 0.001 → 0.003, + warm-up 50".
"""

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from explorer.runs.settings import EVALUATE_EVERY, MODEL_SETTINGS, TRAINING_SETTINGS, WEIGHTS_SEED
from explorer.runs.spec import RunSpec
from explorer.tasks import TASKS
from explorer.text.number_format import three

SHORT_NAMES = {
    "lr": "lr",
    "warmup": "warm-up",
    "batch_size": "batch",
    "n_layers": "layers",
    "n_encoder_layers": "encoder layers",
    "n_heads": "heads",
    "d_model": "width d_model",
    "d_ff": "inner width d_ff",
    "n_kv_heads": "heads of K and V",
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
"""Fields whose number comes before the word: 2 layers."""
NAMED_BY_VALUE = {"positions": "{} positions", "norm": "{} norm", "norm_position": "{}-norm"}
NAMED_BY_VALUE |= {"schedule": "{} schedule", "optimizer": "{}", "activation": "{}"}
NAMED_BY_VALUE |= {"parent": "from {}"}
WITHOUT = {"lora_rank": "whole model"}
"""The words for a setting that is off, where "no …" would be wrong."""
FOLLOWS = {
    "n_encoder_layers": "n_layers",
    "n_kv_heads": "n_heads",
    "d_head": "n_heads",
    "d_classifier": "d_model",
    "lora_alpha": "lora_rank",
    "lora_targets": "lora_rank",
}
"""Fields that may change only because another does; then only the other is named."""
UNSET = (0, None, "none", False, "")


def settings_of(spec: RunSpec) -> dict[str, object]:
    """Every setting of a run, by the name of its field: of the model, the training, the run.

    A run without adapters has no settings of adapters.
    """
    none = () if spec.lora_rank else ("lora_alpha", "lora_targets")
    left_out = ("model", "training", *none)
    names = (field.name for field in dataclasses.fields(spec) if field.name not in left_out)
    own = {name: getattr(spec, name) for name in names}
    return spec.model.to_dict() | spec.training.to_dict() | own


def what_differs(specs: Sequence[RunSpec], titles: Sequence[str] = ()) -> list[str]:
    """A name for each run, from the settings in which they differ; `titles` distinguish equal ones.

    Of several switches only those that are on are named, and usual is the run where none is.
    Runs of several tasks are named by their task, and by how they differ from its defaults.
    """
    every = [settings_of(spec) for spec in specs]
    if len({spec.task for spec in specs}) > 1:
        names = [", ".join([spec.task, *changes(spec)[:3]]) for spec in specs]
    else:
        differing, names = _differing(every), list[str]()
        switches = all(type(of.get(field)) is bool for of in every for field in differing)
        for of, spec in zip(every, specs, strict=True):
            on = [field for field in differing if of.get(field)]
            is_short = len(differing) > 1 and switches and (bool(on) or not changes(spec))
            some = on if is_short else [field for field in differing if field in of]
            words = ", ".join(setting_in_words(field, of[field]) for field in some)
            names.append(words or "usual" * is_short)
    counts = Counter(names)
    titles = titles or [str(at) for at in range(1, 1 + len(names))]
    return [
        name if name and counts[name] == 1 else f"{name} · {title}".removeprefix(" · ")
        for name, title in zip(names, titles, strict=True)
    ]


def changes(spec: RunSpec) -> list[str]:
    """How a run differs from the defaults of its task, if there are any.

    A run that starts from a trained model differs by its parent and its LoRA rank.
    """
    if spec.parent:
        return [setting_in_words(name, getattr(spec, name)) for name in ("parent", "lora_rank")]
    task = TASKS.get(spec.task)
    if task is None:
        return []
    usual = RunSpec(spec.task, task.model, task.training)
    before, after = settings_of(usual), settings_of(spec)
    return [
        _change(field, before.get(field), after[field]) for field in _differing([before, after])
    ]


def setting_in_words(field: str, value: object) -> str:
    """One setting in words: 2 layers, lr 0.003, no warm-up, pre-norm."""
    word = _word(field)
    if field in NAMED_BY_VALUE:
        named = NAMED_BY_VALUE[field].format(_text_of(value))
        return named if value not in UNSET else f"no {word}"
    if field in COUNTED_FIELDS:
        return f"{_text_of(value)} {word[:-1] if value == 1 else word}"
    if value in UNSET and "seed" not in field:
        return WITHOUT.get(field, f"no {word}")
    return word if value is True else f"{word} {_text_of(value)}"


def _change(field: str, before: object, after: object) -> str:
    if after in UNSET and "seed" not in field and field not in COUNTED_FIELDS:
        return setting_in_words(field, after)
    if before in UNSET and "seed" not in field:
        return f"+ {setting_in_words(field, after)}"
    if field in COUNTED_FIELDS:
        return f"{_text_of(before)} → {setting_in_words(field, after)}"
    if field in NAMED_BY_VALUE:
        return f"{setting_in_words(field, before)} → {setting_in_words(field, after)}"
    return f"{_word(field)} {_text_of(before)} → {_text_of(after)}"


def _differing(every: Sequence[Mapping[str, object]]) -> list[str]:
    """The fields that differ, without those that follow from another field."""
    return [
        field
        for field in dict.fromkeys(field for settings in every for field in settings)
        if len({str(settings.get(field)) for settings in every}) > 1
        and not _follows(every, field, FOLLOWS.get(field))
    ]


def _follows(every: Sequence[Mapping[str, object]], field: str, leader: str | None) -> bool:
    """Whether the value of `leader` determines that of the field in all settings."""
    if leader is None:
        return False
    pairs = {(str(settings.get(leader)), str(settings.get(field))) for settings in every}
    return 1 < len({leader_value for leader_value, _ in pairs}) == len(pairs)


def _word(field: str) -> str:
    return SHORT_NAMES.get(field) or WORDS.get(field, field.replace("_", " "))


def _text_of(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


LABELS = {
    setting.field: setting.label
    for setting in (*MODEL_SETTINGS, *TRAINING_SETTINGS, EVALUATE_EVERY, WEIGHTS_SEED)
} | {"stop_at": "Target", "n_kv_heads": "Heads of K and V"}


SCALARS = ("weights_seed", "stop_at", "evaluate_every")


def differences(before: RunSpec, after: RunSpec) -> list[str]:
    """Every setting whose value in `after` is not the one in `before`, such as `layers 1 → 2`."""
    old, new = (
        spec.model.to_dict()
        | spec.training.to_dict()
        | {name: value for name, value in spec.to_dict().items() if name in SCALARS}
        for spec in (before, after)
    )
    words = []
    for name, value in old.items():
        if value != new[name]:
            label = LABELS.get(name, name)
            label = label[0].lower() + label[1:]
            words.append(f"{label} {_in_a_sentence(value)} → {_in_a_sentence(new[name])}")
    return words


def _in_a_sentence(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "on" if value else "off" if value is False else "none"
    return three(value) if isinstance(value, float) else str(value)
