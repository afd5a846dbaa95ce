"""The settings of a run, in one table for the form and the command line, and the run they make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from explorer.app import limits
from explorer.catalog.parameters import count_parameters
from explorer.runs.run import RunError
from explorer.runs.spec import RunSpec
from explorer.tasks import Task
from models import TransformerConfig
from models.config import ACTIVATIONS, NORM_POSITIONS, NORMS, POSITIONS
from models.families.styles import like
from models.training import OPTIMIZERS, SCHEDULES


@dataclass(frozen=True)
class Setting:
    """One setting: either one of its options, or a number of its range (whole without a format)."""

    name: str
    label: str
    options: tuple[str, ...] = ()
    low: float = 0
    high: float = 0
    step: float = 1
    format: str = ""

    @property
    def field(self) -> str:
        """The field of the config that it sets."""
        return {"layers": "n_layers", "heads": "n_heads"}.get(self.name, self.name)


MODEL_SETTINGS = (
    Setting("layers", "Layers", low=1, high=12),
    Setting("heads", "Heads", low=1, high=16),
    Setting("d_model", "d_model", low=4, high=512, step=4),
    Setting("d_ff", "d_ff (0: none)", high=2048, step=16),
    Setting("positions", "Positions", POSITIONS),
    Setting("norm", "Norm", NORMS),
    Setting("norm_position", "Norm placement", NORM_POSITIONS),
    Setting("activation", "Activation", ACTIVATIONS),
    Setting("dropout", "Dropout", high=0.9, step=0.05, format="%.2f"),
)
TRAINING_SETTINGS = (
    Setting("lr", "Learning rate", high=10.0, step=1e-3, format="%.2g"),
    Setting("schedule", "Schedule", SCHEDULES),
    Setting("warmup", "Warm-up steps", high=10_000, step=10),
    Setting("steps", "Steps", low=1, high=100_000, step=100),
    Setting("batch_size", "Batch size", low=1, high=512, step=8),
    Setting("optimizer", "Optimizer", OPTIMIZERS),
    Setting("beta2", "Adam β₂", high=0.9999, step=1e-3, format="%.4g"),
    Setting("eps", "Adam ε", low=1e-16, high=1.0, step=1e-9, format="%.2g"),
    Setting("label_smoothing", "Label smoothing", high=0.5, step=0.05, format="%.2f"),
    Setting("weight_decay", "Weight decay", high=2.0, step=0.01, format="%.2f"),
    Setting("seed", "Data seed", high=9999),
)
WEIGHTS_SEED = Setting("weights_seed", "Weight seed", high=9999)


def spec_of(task: Task, settings: Mapping[str, Any]) -> RunSpec:
    """The run of this task with these settings; the task's own where there is none or None.

    Besides the tables' names: `like` (a family or document), `weights_seed` and `stop_at`.
    RunError, in one sentence, where it cannot be trained.
    """
    model = built_like(task.model, settings.get("like"))
    changes = _changes(settings, MODEL_SETTINGS)
    if settings.get("like") == "bert" and "d_model" in changes:
        changes["d_classifier"] = changes["d_model"]
    if "n_layers" in changes:
        changes["n_encoder_layers"] = None
    if "n_heads" in changes:
        changes |= {"n_kv_heads": None, "d_head": None}
    spec = RunSpec(
        task=task.name,
        model=model.replace(**changes),
        training=task.training.replace(**_changes(settings, TRAINING_SETTINGS)),
        weights_seed=settings.get("weights_seed") or 0,
        stop_at=settings.get("stop_at"),
    )
    if fault := spec.fault() or _size_fault(spec):
        raise RunError(fault)
    return spec


def built_like(config: TransformerConfig, family: str | None) -> TransformerConfig:
    """The config with the choices of a published family. RunError where its kind differs."""
    try:
        return config if family is None else like(config, family)
    except ValueError as error:
        raise RunError(str(error)) from error


def _changes(settings: Mapping[str, Any], table: tuple[Setting, ...]) -> dict[str, Any]:
    """What is set, by the fields of the config."""
    return {
        setting.field: settings[setting.name]
        for setting in table
        if settings.get(setting.name) is not None
    }


def _size_fault(spec: RunSpec) -> str | None:
    """A sentence where it is too much to train here, known before the model is built."""
    asked = {
        limits.RUN_PARAMETERS: count_parameters(spec.model),
        limits.RUN_STEPS: spec.training.steps,
    }
    return next((each.refusal(n) for each, n in asked.items() if not each.allows(n)), None)
