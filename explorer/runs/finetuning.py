"""Fine-tuning: the run of a task that starts from a model which was trained before."""

from collections.abc import Mapping
from typing import Any

from explorer.catalog.folders import own_name
from explorer.catalog.open_model import OpenModel
from explorer.catalog.parameters import count_parameters
from explorer.runs.run_size import memory_fault
from explorer.runs.settings import TRAINING_SETTINGS
from explorer.runs.spec import RunError, RunSpec
from explorer.system import limits
from explorer.tasks import Task
from explorer.text.token import PAD
from models import TransformerConfig
from models.config import TrainConfig
from models.lora import USUAL_TARGETS, target_ranks

LORA_RATE, WHOLE_RATE = 1e-3, 3e-4
STEPS, BATCH = 300, 16


def finetune_spec(opened: OpenModel, task: Task, settings: Mapping[str, Any]) -> RunSpec:
    """The run that trains this model further, for a task of `parent.task_for`.

    The settings are those of `TRAINING_SETTINGS`, `weights_seed` (of a new head, and of the
    adapters), `stop_at`, `evaluate_every`, `lora_rank` (0 trains the whole model), `lora_alpha` and
    `lora_targets`. RunError, in one sentence, where it cannot be trained.
    """
    given = {name: value for name, value in settings.items() if value is not None}
    rank = given.get("lora_rank", 0)
    training = {each.field: given[each.name] for each in TRAINING_SETTINGS if each.name in given}
    config = fitted(opened.config, task)
    spec = RunSpec(
        task=task.name,
        model=config,
        training=usual_training(task, rank).replace(**training),
        weights_seed=given.get("weights_seed", 0),
        stop_at=given.get("stop_at"),
        evaluate_every=given.get("evaluate_every", 0),
        parent=own_name(opened.name),  # the key of a private run stays in its address
        lora_rank=rank,
        lora_alpha=given.get("lora_alpha", 2.0 * max(1, rank)),
        lora_targets=tuple(given.get("lora_targets") or usual_targets(config)),
    )
    if fault := spec.fault() or size_fault(spec) or memory_fault(task, spec):
        raise RunError(fault)
    return spec


def fitted(config: TransformerConfig, task: Task) -> TransformerConfig:
    """The parent's config with the head that the task needs. RunError where it can have none."""
    wanted, given = task.model, config
    if wanted.head == "classifier":
        if config.kind == "encoder-decoder":
            raise RunError(
                "An encoder-decoder gets no classifier: start from a model of one stack."
            )
        if config.head != "classifier":
            given = config.replace(head="classifier", **_new_head(config))
        pad_id = task.tokenizer.id_of(PAD) if config.pad_id is None else config.pad_id
        return given.replace(n_classes=len(task.classes), pad_id=pad_id)
    if (config.kind, config.head) != (wanted.kind, wanted.head):
        has = "no head" if config.head == "none" else f"the head of a {_words(config.head)}"
        raise RunError(
            f"{task.title} needs {_a(wanted.kind)} with the head of a {_words(wanted.head)}, and "
            f"this model is {_a(config.kind)} with {has}: start from another one."
        )
    return config


def _new_head(config: TransformerConfig) -> dict[str, Any]:
    """As published models of the kind have it: a decoder's last token, an encoder's first."""
    if config.kind == "decoder":
        return {"pooling": "last", "d_classifier": None, "classifier_bias": False}
    dense = {"d_classifier": config.d_model, "classifier_activation": "tanh"}
    return {"pooling": "first", "classifier_bias": True} | dense


def _words(name: str) -> str:
    return name.replace("-", " ")


def _a(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def usual_training(task: Task, rank: int) -> TrainConfig:
    """Fewer and smaller steps than from new weights, whose task's own they are otherwise."""
    return task.training.replace(
        steps=STEPS,
        batch_size=BATCH,
        lr=LORA_RATE if rank else WHOLE_RATE,
        warmup=20,
        schedule="linear",
    )


def usual_targets(config: TransformerConfig) -> tuple[str, ...]:
    """The matrices that get an adapter unless others are chosen."""
    return tuple(each for each in USUAL_TARGETS if each in target_ranks(config))


def size_fault(spec: RunSpec) -> str | None:
    """A sentence where it is too much to fine-tune here, known before any weight is copied."""
    size, trained = count_parameters(spec.model), spec.trained_parameters
    if not limits.PARENT_PARAMETERS.allows(size):
        return limits.PARENT_PARAMETERS.refusal(size)
    if not limits.RUN_PARAMETERS.allows(trained):
        return (
            f"This would train {trained:,} parameters, and at most "
            f"{limits.RUN_PARAMETERS.in_words(limits.RUN_PARAMETERS.most)} are trained here: "
            "choose LoRA with a small rank, or a smaller model."
        )
    if not limits.RUN_STEPS.allows(spec.training.steps):
        return limits.RUN_STEPS.refusal(spec.training.steps)
    return None
