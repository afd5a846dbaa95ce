"""The settings of a run, one table for the form and the command line, and the spec they make."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from explorer.catalog.parameters import count_parameters
from explorer.runs.run_size import memory_fault
from explorer.runs.spec import RunError, RunSpec
from explorer.system import limits
from explorer.tasks import Task
from models import TransformerConfig
from models.config import TrainConfig
from models.config_fields import PlainData
from models.families.family_presets import like


@dataclass(frozen=True)
class Setting:
    """One setting: a switch, one of its options, or a number in its range.

    Without a format, the number is an integer.
    """

    name: str
    label: str
    options: tuple[str, ...] = ()
    low: float = 0
    high: float = 0
    step: float = 1
    format: str = ""
    help: str = ""
    is_switch: bool = False
    of: tuple[str, ...] = ()
    """The optimizers that have it; empty for all."""

    @property
    def field(self) -> str:
        """The field of the config that it sets."""
        return FIELDS.get(self.name, self.name)

    def value_in(self, config: TransformerConfig | TrainConfig) -> Any:
        """Its value in a config."""
        return getattr(config, self.name if self.name == "share_kv" else self.field)


FIELDS = {"layers": "n_layers", "heads": "n_heads", "share_kv": "n_kv_heads"}


def _of(config: type[PlainData], name: str, label: str, **more: Any) -> Setting:
    """A setting of this config, with the options or the range of the field."""
    setting = Setting(name, label, **more)
    field = config.__dataclass_fields__[setting.field]  # type: ignore[attr-defined]
    low, high = field.metadata.get("range", (0, 0))
    options, is_switch = field.metadata.get("options", ()), field.type is bool
    return replace(setting, options=options, is_switch=is_switch, low=low, high=high)


_model, _training, _run = (
    partial(_of, config) for config in (TransformerConfig, TrainConfig, RunSpec)
)
ADAM = ("adamw", "adam", "muon")
"""Muon leaves embeddings and vectors to AdamW."""
MODEL_SETTINGS = (
    _model("layers", "Layers", help="Blocks, of each stack where there are two."),
    _model("heads", "Heads", help="d_model has to be divisible by them."),
    _model("d_model", "d_model", step=4, help="Width of the residual stream."),
    _model(
        *("d_ff", "d_ff (0: none)"),
        step=16,
        help="Width of the feed-forward layers; 0 leaves attention alone.",
    ),
    _model("positions", "Positions", help="How the order of tokens is encoded."),
    _model(
        *("max_len", "Longest input"),
        help="Tokens that the model has positions for, at least as many as the task's texts have. "
        "Positions beyond those of the texts are not trained.",
    ),
    _model(
        *("scale_embedding", "Embedding × √d_model"),
        help="As in the paper (section 3.4), so that the positions do not outweigh the tokens.",
    ),
    _model("qkv_bias", "Bias of Q, K and V"),
    Setting(
        *("share_kv", "All heads share K and V"),
        is_switch=True,
        help="One projection of keys and one of values for all heads: multi-query attention.",
    ),
    _model(
        *("sink_logit", "Sink logit"),
        help="A learned logit of each head joins its softmax, so that a row may attend to nothing.",
    ),
    _model(
        *("gated_attention", "Gated attention"),
        help="Each head's output is multiplied by a sigmoid of a projection of its token.",
    ),
    _model("norm", "Norm"),
    _model(
        *("norm_position", "Norm placement"),
        help="Before a block, after its residual connection as in the paper, or both.",
    ),
    _model("activation", "Activation"),
    _model(
        *("dropout", "Dropout"),
        step=0.05,
        format="%.2f",
        help="The share of values that are set to zero while training.",
    ),
)
TRAINING_SETTINGS = (
    _training(
        *("lr", "Learning rate"),
        step=1e-3,
        format="%.3g",
        help="The highest rate, reached at the end of the warm-up.",
    ),
    _training(
        *("schedule", "Schedule"),
        help="After the warm-up. The inverse square root is the paper's (section 5.3).",
    ),
    _training("warmup", "Warm-up steps", step=10, help="Steps over which the rate rises linearly."),
    _training("steps", "Steps", step=100, help="Updates of the weights."),
    _training("batch_size", "Batch size", step=8, help="Examples for one update of the weights."),
    _training(
        *("accumulation", "Accumulation"),
        help="The batch goes through the model in this many parts, one after another, to save "
        "memory. The update is the same except for dropout.",
    ),
    _training(
        *("optimizer", "Optimizer"),
        help="AdamW is Adam with decoupled weight decay. Muon makes the update of each hidden "
        "matrix orthogonal and leaves the rest to AdamW.",
    ),
    _training(
        *("momentum", "Momentum, β₁"),
        step=0.01,
        format="%.4g",
        help="The share of the previous direction that is kept; with Adam it is β₁.",
    ),
    _training("beta2", "Adam β₂", step=1e-3, format="%.4g", of=ADAM),
    _training("eps", "Adam ε", step=1e-9, format="%.2g", of=ADAM),
    _training(
        *("label_smoothing", "Label smoothing"),
        step=0.05,
        format="%.2f",
        help="The share of the target's probability that is spread over all tokens (section 5.4).",
    ),
    _training(
        *("weight_decay", "Weight decay"),
        step=0.01,
        format="%.3g",
        help="Of matrices; norms and biases have none.",
    ),
    _training(
        *("clip", "Clip gradients at"),
        step=0.1,
        format="%.3g",
        help="The largest norm of the gradient over all parameters; 0 clips nothing.",
    ),
    _training("seed", "Data seed", help="Of the order of the examples, and of dropout."),
)
WEIGHTS_SEED = _run("weights_seed", "Weight seed", help="Of the weights at step 0.")
LORA_SETTINGS = (
    _run("lora_rank", "LoRA rank (0: whole model)"),
    _run("lora_alpha", "LoRA α", format="%.3g"),
)
"""Settings of a run that starts from a trained model."""
EVALUATE_EVERY = _run(
    *("evaluate_every", "Evaluate every"),
    step=10,
    help="Steps between two measurements on held-out data; 0: at every snapshot, and "
    "between them in 1 % of the time.",
)


def default_spec(task: Task) -> RunSpec:
    """The run of this task with the task's own settings."""
    return RunSpec(task.name, task.model, task.training)


OF_DATA = "vocab_size", "src_vocab_size", "n_classes", "pad_id", "bos_id", "generation"
"""Fields of a model that follow from its training data."""


def settings_for(task: Task, run: RunSpec) -> RunSpec:
    """The settings of another run, for this task, which may have another text."""
    of_data = {name: getattr(task.model, name) for name in OF_DATA}
    longest = max(task.model.max_len, run.model.max_len)
    return replace(run, model=run.model.replace(**of_data, max_len=longest))


def spec_of(task: Task, settings: Mapping[str, Any], base: RunSpec | None = None) -> RunSpec:
    """The run of this task with these settings; a missing one, or None, is that of `base`.

    `base` is another run of the task, by default the task's own settings. Besides the names of the
    tables there are `like` (a family or document, applied to the task's own model), `weights_seed`,
    `stop_at` and `evaluate_every`. RunError says in one sentence why it cannot be trained.
    """
    base = base or default_spec(task)
    like = settings.get("like")
    model = base.model if like is None else built_like(task.model, like)
    changes = changes_in(settings, MODEL_SETTINGS, model)
    if like == "bert" and "d_model" in changes:
        changes["d_classifier"] = changes["d_model"]
    if "n_layers" in changes:
        changes["n_encoder_layers"] = None
    if "n_heads" in changes:
        changes |= {"n_kv_heads": model.share_kv, "d_head": None} | changes
    if "n_kv_heads" in changes:
        changes["n_kv_heads"] = 1 if changes["n_kv_heads"] else None
    spec = replace(
        base,
        task=task.name,
        model=model.replace(**changes),
        training=base.training.replace(**changes_in(settings, TRAINING_SETTINGS, base.training)),
        weights_seed=_otherwise(settings.get("weights_seed"), base.weights_seed),
        stop_at=settings.get("stop_at", base.stop_at),
        evaluate_every=_otherwise(settings.get("evaluate_every"), base.evaluate_every),
    )
    if spec.model.max_len < task.model.max_len:
        raise RunError(
            f"The texts of this task have up to {task.model.max_len:,} tokens: raise the longest "
            f"input from {spec.model.max_len:,}."
        )
    if fault := spec.fault() or _size_fault(spec) or memory_fault(task, spec):
        raise RunError(fault)
    return spec


def built_like(config: TransformerConfig, family: str | None) -> TransformerConfig:
    """The config with the choices of a published family. RunError if the kinds differ."""
    try:
        return config if family is None else like(config, family)
    except ValueError as error:
        raise RunError(str(error)) from error


def changes_in(
    settings: Mapping[str, Any], table: tuple[Setting, ...], config: TransformerConfig | TrainConfig
) -> dict[str, Any]:
    """The settings that differ from this config, by its fields."""
    return {
        setting.field: value
        for setting in table
        if (value := settings.get(setting.name)) not in (None, setting.value_in(config))
    }


def _otherwise(value: Any, usual: Any) -> Any:
    return usual if value is None else value


def _size_fault(spec: RunSpec) -> str | None:
    """A sentence if the run is too large to train here, before the model is built."""
    amounts = {
        limits.RUN_PARAMETERS: count_parameters(spec.model),
        limits.RUN_STEPS: spec.training.steps,
    }
    return next((limit.refusal(n) for limit, n in amounts.items() if not limit.allows(n)), None)
