"""The settings of a run, in one table for the form and the command line, and the run they make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from explorer.catalog.parameters import count_parameters
from explorer.runs.run import RunError
from explorer.runs.run_size import memory_fault
from explorer.runs.spec import RunSpec
from explorer.system import limits
from explorer.tasks import Task
from models import TransformerConfig
from models.config import ACTIVATIONS, NORM_POSITIONS, NORMS, POSITIONS
from models.families.styles import like
from models.optimizers import OPTIMIZERS
from models.schedules import SCHEDULES
from models.training import TrainConfig


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
    help: str = ""
    of: tuple[str, ...] = ()
    """The optimizers that have it; all where there is none."""

    @property
    def field(self) -> str:
        """The field of the config that it sets."""
        return {"layers": "n_layers", "heads": "n_heads"}.get(self.name, self.name)


ADAM = ("adamw", "adam", "muon")
"""Muon leaves embeddings and vectors to AdamW."""
MODEL_SETTINGS = (
    Setting("layers", "Layers", low=1, high=48, help="Blocks, of each stack where there are two."),
    Setting("heads", "Heads", low=1, high=64, help="d_model has to be divisible by them."),
    Setting("d_model", "d_model", low=4, high=8_192, step=4, help="Width of the residual stream."),
    Setting(
        *("d_ff", "d_ff (0: none)"),
        high=32_768,
        step=16,
        help="Width of the feed-forward layers; 0 leaves attention alone.",
    ),
    Setting("positions", "Positions", POSITIONS, help="How the order of tokens is encoded."),
    Setting("norm", "Norm", NORMS),
    Setting(
        *("norm_position", "Norm placement", NORM_POSITIONS),
        help="Before a block, after its residual connection as in the paper, or both.",
    ),
    Setting("activation", "Activation", ACTIVATIONS),
    Setting(
        *("dropout", "Dropout"),
        high=0.9,
        step=0.05,
        format="%.2f",
        help="The share of values that are set to zero while training.",
    ),
)
TRAINING_SETTINGS = (
    Setting(
        *("lr", "Learning rate"),
        high=1e9,
        step=1e-3,
        format="%.3g",
        help="The highest rate, reached at the end of the warm-up.",
    ),
    Setting(
        *("schedule", "Schedule", SCHEDULES),
        help="After the warm-up. The inverse square root is the paper's (section 5.3).",
    ),
    Setting(
        *("warmup", "Warm-up steps"),
        high=10_000,
        step=10,
        help="Steps over which the rate rises linearly.",
    ),
    Setting("steps", "Steps", low=1, high=100_000, step=100, help="Updates of the weights."),
    Setting(
        *("batch_size", "Batch size"),
        low=1,
        high=4_096,
        step=8,
        help="Examples for one update of the weights.",
    ),
    Setting(
        *("accumulation", "Accumulation"),
        low=1,
        high=4_096,
        help="The batch goes through the model in this many parts, one after another, to save "
        "memory. The update is the same except for dropout.",
    ),
    Setting(
        *("optimizer", "Optimizer", OPTIMIZERS),
        help="AdamW is Adam with decoupled weight decay. Muon makes the update of each hidden "
        "matrix orthogonal and leaves the rest to AdamW.",
    ),
    Setting(
        *("momentum", "Momentum, β₁"),
        high=0.9999,
        step=0.01,
        format="%.4g",
        help="The share of the previous direction that is kept; with Adam it is β₁.",
    ),
    Setting("beta2", "Adam β₂", high=0.9999, step=1e-3, format="%.4g", of=ADAM),
    Setting("eps", "Adam ε", low=1e-16, high=1.0, step=1e-9, format="%.2g", of=ADAM),
    Setting(
        *("label_smoothing", "Label smoothing"),
        high=0.5,
        step=0.05,
        format="%.2f",
        help="The share of the target's probability that is spread over all tokens (section 5.4).",
    ),
    Setting(
        *("weight_decay", "Weight decay"),
        high=2.0,
        step=0.01,
        format="%.3g",
        help="Of matrices; norms and biases have none.",
    ),
    Setting(
        *("clip", "Clip gradients at"),
        high=1_000.0,
        step=0.1,
        format="%.3g",
        help="The largest norm of the gradient over all parameters; 0 clips nothing.",
    ),
    Setting(
        *("seed", "Data seed"), high=9999, help="Of the order of the examples, and of dropout."
    ),
)
WEIGHTS_SEED = Setting("weights_seed", "Weight seed", high=9999, help="Of the weights at step 0.")
LORA_SETTINGS = (
    Setting("lora_rank", "LoRA rank (0: whole model)"),
    Setting("lora_alpha", "LoRA α", format="%.3g"),
)
"""Of a run that starts from a trained model."""
EVALUATE_EVERY = Setting(
    *("evaluate_every", "Evaluate every"),
    high=10_000,
    step=10,
    help="Steps between two measurements on held-out data; 0: at every snapshot, and "
    "between them in 1 % of the time.",
)


def default_spec(task: Task) -> RunSpec:
    """The run of this task with the settings of its own."""
    return RunSpec(task.name, task.model, task.training)


OF_DATA = (
    *("vocab_size", "src_vocab_size", "n_classes", "max_len"),
    *("pad_id", "bos_id", "generation"),
)
"""Fields of a model that follow from what it learns from."""


def settings_for(task: Task, run: RunSpec) -> RunSpec:
    """The settings of another run, for this task: it may be made of another text."""
    of_data = {name: getattr(task.model, name) for name in OF_DATA}
    return replace(run, model=run.model.replace(**of_data))


def spec_of(task: Task, settings: Mapping[str, Any], base: RunSpec | None = None) -> RunSpec:
    """The run of this task with these settings; those of `base` where there is none or None.

    `base` is another run of the task, otherwise the task's own settings. Besides the tables'
    names: `like` (a family or document, of the task's own model), `weights_seed`, `stop_at` and
    `evaluate_every`.
    RunError, in one sentence, where it cannot be trained.
    """
    base = base or default_spec(task)
    like = settings.get("like")
    model = base.model if like is None else built_like(task.model, like)
    changes = _changes(settings, MODEL_SETTINGS, model)
    if like == "bert" and "d_model" in changes:
        changes["d_classifier"] = changes["d_model"]
    if "n_layers" in changes:
        changes["n_encoder_layers"] = None
    if "n_heads" in changes:
        changes |= {"n_kv_heads": None, "d_head": None}
    spec = replace(
        base,
        task=task.name,
        model=model.replace(**changes),
        training=base.training.replace(**_changes(settings, TRAINING_SETTINGS, base.training)),
        weights_seed=_otherwise(settings.get("weights_seed"), base.weights_seed),
        stop_at=settings.get("stop_at", base.stop_at),
        evaluate_every=_otherwise(settings.get("evaluate_every"), base.evaluate_every),
    )
    if fault := spec.fault() or _size_fault(spec) or memory_fault(task, spec):
        raise RunError(fault)
    return spec


def built_like(config: TransformerConfig, family: str | None) -> TransformerConfig:
    """The config with the choices of a published family. RunError where its kind differs."""
    try:
        return config if family is None else like(config, family)
    except ValueError as error:
        raise RunError(str(error)) from error


def _changes(
    settings: Mapping[str, Any], table: tuple[Setting, ...], config: TransformerConfig | TrainConfig
) -> dict[str, Any]:
    """What is set otherwise than in this config, by its fields."""
    values = {each.field: settings.get(each.name) for each in table}
    return {
        field: value
        for field, value in values.items()
        if value is not None and value != getattr(config, field)
    }


def _otherwise(value: Any, usual: Any) -> Any:
    return usual if value is None else value


def _size_fault(spec: RunSpec) -> str | None:
    """A sentence where it is too much to train here, known before the model is built."""
    asked = {
        limits.RUN_PARAMETERS: count_parameters(spec.model),
        limits.RUN_STEPS: spec.training.steps,
    }
    return next((each.refusal(n) for each, n in asked.items() if not each.allows(n)), None)
