"""From what somebody wishes, on the page or the command line, to what a run is asked to do."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from explorer.runs.run import RunError
from explorer.runs.spec import RunSpec
from explorer.tasks import Task
from models import Transformer, TransformerConfig
from models.families.styles import like

MOST_PARAMETERS = 20_000_000
"""A larger model would take this machine's memory and hours for what minutes show."""


@dataclass(frozen=True)
class Wishes:
    """What differs from the task's own settings; None leaves a setting as it is."""

    like: str | None = None
    layers: int | None = None
    heads: int | None = None
    d_model: int | None = None
    d_ff: int | None = None
    dropout: float | None = None
    norm: str | None = None
    norm_position: str | None = None
    positions: str | None = None
    activation: str | None = None
    steps: int | None = None
    batch_size: int | None = None
    lr: float | None = None
    warmup: int | None = None
    schedule: str | None = None
    optimizer: str | None = None
    weight_decay: float | None = None
    label_smoothing: float | None = None
    seed: int | None = None
    weights_seed: int | None = None
    stop_at: float | None = None

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(field.name for field in dataclasses.fields(cls))


MODEL_FIELDS = (
    "d_model",
    "d_ff",
    "dropout",
    "norm",
    "norm_position",
    "positions",
    "activation",
)
TRAINING_FIELDS = (
    "steps",
    "batch_size",
    "lr",
    "warmup",
    "schedule",
    "optimizer",
    "weight_decay",
    "label_smoothing",
    "seed",
)


def spec_of(task: Task, wishes: Wishes) -> RunSpec:
    """The run that was wished for. RunError says, in the words of the fault, why it is none."""
    model = built_like(task.model, wishes.like)
    model_changes = _given(wishes, MODEL_FIELDS)
    if wishes.like == "bert" and wishes.d_model is not None:
        model_changes["d_classifier"] = wishes.d_model
    if wishes.layers is not None:
        model_changes["n_layers"] = wishes.layers
        model_changes["n_encoder_layers"] = None
    if wishes.heads is not None:
        model_changes |= {"n_heads": wishes.heads, "n_kv_heads": None, "d_head": None}
    spec = RunSpec(
        task=task.name,
        model=model.replace(**model_changes),
        training=task.training.replace(**_given(wishes, TRAINING_FIELDS)),
        weights_seed=0 if wishes.weights_seed is None else wishes.weights_seed,
        stop_at=wishes.stop_at,
    )
    if fault := spec.fault() or _size_fault(spec):
        raise RunError(fault)
    return spec


def built_like(config: TransformerConfig, family: str | None) -> TransformerConfig:
    """The config with the choices of a published family. RunError when its kind is another."""
    try:
        return config if family is None else like(config, family)
    except ValueError as error:
        raise RunError(str(error)) from error


def _given(wishes: Wishes, names: tuple[str, ...]) -> dict[str, Any]:
    values = {name: getattr(wishes, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def _size_fault(spec: RunSpec) -> str | None:
    """What is far too large is refused before anything is built, with its exact count."""
    count = _count(spec.model)
    if count > MOST_PARAMETERS:
        return (
            f"This model has {count:,} parameters; at most {MOST_PARAMETERS:,} are trained "
            "here, so make it narrower or give it fewer layers."
        )
    return None


@lru_cache(maxsize=64)
def _count(config: TransformerConfig) -> int:
    with torch.device("meta"):  # the shapes alone, no numbers
        return Transformer(config).n_parameters
