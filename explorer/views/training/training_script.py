"""The training that the form asks for, as a script."""

from typing import Any

from explorer.catalog.open_model import open_model
from explorer.runs.finetuning import finetune_spec, task_for, with_head
from explorer.runs.settings import TRAINING_SETTINGS
from explorer.runs.spec import RunSpec
from explorer.tasks import TASKS, task_of
from explorer.tasks.own_data import SUBWORDS, WORDS
from explorer.views.shared.code_panel import Expression, Script, script
from models import Transformer
from models.training import train

OF_THE_TEXT = ("vocab_size", "src_vocab_size", "pad_id", "bos_id", "generation")
"""Settings of a model that follow from the reader's text."""


def training_script(spec: RunSpec, tokenizer: str | None = None) -> Script:
    """What the reader gave is named and not copied."""
    text = None if spec.task in TASKS else Expression('open("your-text.txt").read()')
    if spec.parent:
        settings = {
            each.name: getattr(spec.training, each.field)
            for each in TRAINING_SETTINGS
            if each.field in spec.training.to_dict()
        }
        settings |= {"weights_seed": spec.weights_seed, "lora_rank": spec.lora_rank}
        if spec.lora_rank:
            settings |= {"lora_alpha": spec.lora_alpha, "lora_targets": spec.lora_targets}
        return script(finetuning_code, spec.parent, spec.task, text, settings)
    if tokenizer and tokenizer not in (WORDS, SUBWORDS):
        tokenizer = Expression('open("tokenizer.json").read()')
    model, training = (_changes(spec, part) for part in ("model", "training"))
    return script(training_code, spec.task, text, tokenizer, model, training, spec.weights_seed)


def _changes(spec: RunSpec, part: str) -> dict[str, Any]:
    """What the form changed of the task's own settings."""
    mine = getattr(spec, part).to_dict()
    if spec.task not in TASKS:
        return {name: value for name, value in mine.items() if name not in OF_THE_TEXT}
    theirs = getattr(TASKS[spec.task], part).to_dict()
    return {name: value for name, value in mine.items() if theirs.get(name) != value}


def training_code(
    name: str,
    text: str | None,
    tokenizer: str | None,
    model_settings: dict[str, Any],
    settings: dict[str, Any],
    seed: int,
) -> None:
    task = task_of(name, text, tokenizer)
    training = task.training.replace(**settings)
    model = Transformer(task.model.replace(**model_settings), seed=seed)
    losses = []
    for report in train(model, lambda step: task.batch(step, training), training):
        losses.append(report.loss)
        print(report.step, report.loss)


def finetuning_code(parent: str, name: str, text: str | None, settings: dict[str, Any]) -> None:
    opened = open_model(parent)
    task = task_for(opened, name, text)
    spec = finetune_spec(opened, task, settings)
    model = with_head(opened.model, spec)
    model = spec.adapt(model) if spec.lora_rank else model
    losses = []
    for report in train(model, lambda step: task.batch(step, spec.training), spec.training):
        losses.append(report.loss)
        print(report.step, report.loss)
