"""Fine-tuning: the run of a task that starts from a model which was trained before.

The folder `parent/` of the run has that model's config, weights and tokenizer, so the run resumes
on another machine, or after the model is deleted. With LoRA every checkpoint of the run links
these weights and adds a small file with its adapters; it still opens as a plain model.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from explorer.catalog import in_a_sentence
from explorer.catalog.folders import own_name
from explorer.catalog.opened_model import OpenModel
from explorer.catalog.parameters import count_parameters
from explorer.catalog.tokenizers import TypedTokenIds, tokenizer_family, tokenizer_in
from explorer.runs.run_size import memory_fault, trained_parameters
from explorer.runs.settings import TRAINING_SETTINGS, changes_in
from explorer.runs.spec import RunError, RunSpec
from explorer.system import limits
from explorer.tasks import CUSTOM_TASKS, TASKS, Task, task_of
from explorer.tasks.labelled_sentences import SentenceTask
from explorer.text import (
    AnyTokenizer,
    ParentTokenizer,
    PublishedTokenizer,
    TextError,
    Tokenizer,
    TrainedWith,
)
from explorer.text.published.adopted import AdoptedTokenizer
from explorer.text.token import BOS, CLS, EOS, PAD, SOURCE
from models import Transformer, TransformerConfig, load_checkpoint, save_checkpoint
from models.loading.checkpoint import CheckpointError, link_or_copy, peek
from models.loading.folder_config import OURS
from models.loading.safe_files import CONFIG, RUN
from models.loading.weight_files import WEIGHTS
from models.lora import USUAL_TARGETS, target_ranks

PARENT = "parent"


def task_for(opened: OpenModel, name: str, text: str | None = None) -> Task:
    """The task of this name, with this model's tokenizer; TextError says why that is impossible."""
    return _task(name, text, opened.tokenizer, opened.config)


def task_in(folder: Path, name: str, text: str | None = None) -> Task:
    """The task of this name, with the tokenizer of the parent in a run's folder."""
    try:
        config = peek(folder)[0]
        tokenizer = tokenizer_in(folder, OURS, config)
    except (CheckpointError, OSError) as error:
        raise RunError(
            f"The model that this run starts from cannot be read: {in_a_sentence(error)}"
        ) from error
    return _task(name, text, tokenizer, config)


def _task(name: str, text: str | None, tokenizer: AnyTokenizer, config: TransformerConfig) -> Task:
    if isinstance(tokenizer, TypedTokenIds):
        raise TextError("This model has no tokenizer: choose another one to start from.")
    if config.src_vocab_size is not None:
        raise TextError("This model has two vocabularies: choose one with a single one.")
    task = TASKS.get(name)
    if task is not None:
        if isinstance(tokenizer, Tokenizer) and tokenizer.to_json() == task.tokenizer.to_json():
            return task
        raise TextError(
            f"{task.title} has a vocabulary of its own, which this model does not read: choose a "
            "task made of a text or table."
        )
    custom = CUSTOM_TASKS.get(name)
    if custom and not custom.tokenizers:
        raise TextError(
            f"{custom.title} has a tokenizer of its own: choose a task whose text may be read by "
            "another one."
        )
    if custom and custom.reads == SOURCE and config.kind != "encoder-decoder":
        raise TextError(f"{custom.title} need an encoder-decoder: start from another model.")
    return _custom_task(name, text, for_training(tokenizer, config), config.max_len)


@lru_cache(maxsize=4)
def _custom_task(name: str, text: str | None, tokenizer: TrainedWith, max_len: int) -> Task:
    """The same object for the same arguments: caches are keyed by the task's identity."""
    task = task_of(name, text, tokenizer)
    if max_len < task.model.max_len:
        task = task.within(max_len)
    return task.as_it_is() if isinstance(task, SentenceTask) else task


def for_training(tokenizer: AnyTokenizer, config: TransformerConfig) -> TrainedWith:
    """The tokenizer of a model, with the special tokens that a task needs."""
    if not isinstance(tokenizer, PublishedTokenizer):
        assert isinstance(tokenizer, Tokenizer)
        return tokenizer
    if isinstance(tokenizer, AdoptedTokenizer):
        return tokenizer
    ends = (tokenizer.bos_id, tokenizer.eos_id)
    no_end = [i for i in (tokenizer.pad_id, tokenizer.unk_id) if i not in ends]
    ids = {
        PAD: (config.pad_id, *no_end, tokenizer.eos_id),  # the end token pads as a last resort
        BOS: (config.bos_id, tokenizer.bos_id, tokenizer.cls_id, tokenizer.eos_id),
        EOS: (tokenizer.eos_id, tokenizer.sep_id),
        CLS: (tokenizer.cls_id,),
    }
    first = {name: next((i for i in some if i is not None), None) for name, some in ids.items()}
    return ParentTokenizer(tokenizer, {name: i for name, i in first.items() if i is not None})


def write_parent(folder: Path, opened: OpenModel, spec: RunSpec) -> None:
    """Write the model of the spec before any update, with the parent's tokenizer."""
    tokenizer = opened.tokenizer
    own = tokenizer.to_json() if isinstance(tokenizer, Tokenizer | AdoptedTokenizer) else None
    record = {"title": opened.title}
    if own is None:
        family = opened.family if opened.family != OURS else tokenizer_family(opened.run)
        record["tokenizer"] = family
    save_checkpoint(folder, with_head(opened.model, spec), tokenizer=own, run=record, private=True)
    if own is None and isinstance(tokenizer, PublishedTokenizer):
        try:
            tokenizer.copy_to(folder)
        except TextError as error:
            raise RunError(str(error)) from error


def link_parent(folder: Path, to: Path) -> None:
    """Link the files of another run's parent, so that its weights are on the disk once."""
    to.mkdir(mode=0o700)
    for path in folder.iterdir():
        link_or_copy(path, to / path.name)


def new_head_seed(opened: OpenModel, spec: RunSpec) -> int | None:
    """The seed of the new head that the spec gives the model; None where the head stays."""
    return None if spec.model == opened.config else spec.weights_seed


def with_head(model: Transformer, spec: RunSpec) -> Transformer:
    """A model of the spec's config with the parent's weights; a head of other sizes is new."""
    new_model = Transformer(spec.model, seed=spec.weights_seed)
    weights = dict(model.named_parameters())
    for name, parameter in new_model.named_parameters():
        weight = weights.get(name)
        if weight is not None and weight.shape == parameter.shape:
            parameter.data.copy_(weight)
    return new_model


def initial_model(folder: Path, spec: RunSpec) -> Transformer:
    """The model of the run in this folder before its first update."""
    if not spec.parent:
        return Transformer(spec.model, seed=spec.weights_seed)
    model = load_checkpoint(folder / PARENT).model
    return spec.adapt(model) if spec.lora_rank else model


def linked_files(folder: Path, spec: RunSpec) -> Sequence[Path]:
    """The parent's files that every checkpoint links: its tokenizer, with LoRA also its weights."""
    if not spec.parent:
        return ()
    own = {CONFIG, RUN} | (set() if spec.lora_rank else {WEIGHTS})
    return sorted(path for path in folder.iterdir() if path.name not in own)


def record_of(folder: Path, spec: RunSpec) -> dict[str, object]:
    """The entries of `run.json` about the model that the run starts from."""
    if not spec.parent:
        return {}
    family = tokenizer_family(peek(folder)[1])
    record: dict[str, object] = {"parent": spec.parent, "tokenizer": family}
    if spec.lora_rank:
        record |= {"lora_rank": spec.lora_rank, "lora_alpha": spec.lora_alpha}
    return record


LORA_RATE, WHOLE_RATE = 1e-3, 3e-4
STEPS, BATCH = 300, 16


def finetune_spec(opened: OpenModel, task: Task, settings: Mapping[str, Any]) -> RunSpec:
    """The run that trains this model further, for a task of `task_for`.

    The settings are those of `TRAINING_SETTINGS`, `weights_seed` (of a new head, and of the
    adapters), `stop_at`, `evaluate_every`, `lora_rank` (0 trains the whole model), `lora_alpha` and
    `lora_targets`. RunError says in one sentence why it cannot be trained.
    """
    values = {name: value for name, value in settings.items() if value is not None}
    rank = values.get("lora_rank", 0)
    usual = task.training.replace(  # fewer and smaller steps than from new weights
        steps=STEPS,
        batch_size=BATCH,
        lr=LORA_RATE if rank else WHOLE_RATE,
        warmup=20,
        schedule="linear",
    )
    config = config_for(opened.config, task)
    spec = RunSpec(
        task=task.name,
        model=config,
        training=usual.replace(**changes_in(settings, TRAINING_SETTINGS, usual)),
        weights_seed=values.get("weights_seed", 0),
        stop_at=values.get("stop_at"),
        evaluate_every=values.get("evaluate_every", 0),
        parent=own_name(opened.name),  # the key of a private run stays in its address
        lora_rank=rank,
        lora_alpha=values.get("lora_alpha", 2.0 * max(1, rank)),
        lora_targets=tuple(values.get("lora_targets") or usual_targets(config)),
    )
    if fault := spec.fault() or size_fault(spec) or memory_fault(task, spec):
        raise RunError(fault)
    return spec


def config_for(config: TransformerConfig, task: Task) -> TransformerConfig:
    """The parent's config with the head that the task needs. RunError if it cannot have that."""
    needed = task.model
    if needed.head == "classifier":
        if config.kind == "encoder-decoder":
            raise RunError(
                "An encoder-decoder gets no classifier: start from a model of one stack."
            )
        new_head = {} if config.head == "classifier" else _new_head(config)
        pad_id = task.tokenizer.id_of(PAD) if config.pad_id is None else config.pad_id
        return config.replace(
            head="classifier",
            n_classes=len(task.classes),
            problem_type=None,
            pad_id=pad_id,
            **new_head,
        )
    if (config.kind, config.head) != (needed.kind, needed.head):
        has = "no head" if config.head == "none" else f"the head of a {_words(config.head)}"
        raise RunError(
            f"{task.title} needs {_a(needed.kind)} with the head of a {_words(needed.head)}, and "
            f"this model is {_a(config.kind)} with {has}: start from another one."
        )
    return config


def _new_head(config: TransformerConfig) -> dict[str, Any]:
    """The usual head of published models reads a decoder's last or an encoder's first token."""
    if config.kind == "decoder":
        return {"pooling": "last", "d_classifier": None, "classifier_bias": False}
    dense = {"d_classifier": config.d_model, "classifier_activation": "tanh"}
    return {"pooling": "first", "classifier_bias": True} | dense


def _words(name: str) -> str:
    return name.replace("-", " ")


def _a(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def usual_targets(config: TransformerConfig) -> tuple[str, ...]:
    """The matrices that get an adapter unless others are chosen."""
    return tuple(name for name in USUAL_TARGETS if name in target_ranks(config))


def size_fault(spec: RunSpec) -> str | None:
    """A sentence if the run is too large to fine-tune here, before any weight is copied."""
    size, trained = count_parameters(spec.model), trained_parameters(spec)
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
