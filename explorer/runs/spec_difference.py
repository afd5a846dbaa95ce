"""In which settings two runs of a task differ, and which of them a run takes on as it trains."""

from dataclasses import dataclass
from typing import Any

from explorer.runs.settings import EVALUATE_EVERY, MODEL_SETTINGS, TRAINING_SETTINGS, WEIGHTS_SEED
from explorer.runs.spec import HOT_VALUES, RunSpec
from explorer.text.number_format import three

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
        return f"{label} {said(self.before)} → {said(self.after)}"


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


def said(value: Any) -> str:
    """A value of a setting as a sentence has it."""
    if value is None:
        return "none"
    return three(value) if isinstance(value, float) else str(value)
