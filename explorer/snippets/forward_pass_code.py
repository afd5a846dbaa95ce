"""The lines that make one stage of the forward pass, and a training."""

from __future__ import annotations

from pathlib import Path

from explorer.analysis.forward_pass.kinds import Stage
from explorer.inference.forward_pass import ForwardPass
from explorer.runs.settings import TRAINING_SETTINGS
from explorer.runs.spec import RunSpec
from explorer.snippets.pass_code import (
    CORE,
    hint,
    how_read,
    pass_lines,
    path,
    script,
)
from explorer.tasks import TASKS
from explorer.tasks.own_tokenizer import SUBWORDS, WORDS


def stage(forward: ForwardPass, folder: Path, shown: Stage, head: int, token: int) -> str:
    """The values of one stage: the trace's, or what the page makes where it shows none.

    Where the logits of all positions are too many, those of `token` are made.
    """
    if not shown.site:
        return _made_between(forward, folder, shown, head, token)
    lines = [*pass_lines(forward, folder), f'values = seen["{shown.site}"][0]']
    if shown.per_head:
        lines.append(f"values = values[{head} * len(values) // {forward.config.n_heads}]")
    return script([*lines, "print(values.shape, values)"], CORE)


def _made_between(forward: ForwardPass, folder: Path, shown: Stage, head: int, token: int) -> str:
    texts = ", ".join(repr(each) for each in (forward.text, forward.pair) if each)
    lines = [
        "from pathlib import Path",
        "",
        "from explorer.analysis.forward_pass.pass_values import PassValues, recorded",
        "from explorer.catalog.opened_model import opened_from",
        "from explorer.inference.forward_pass import run_text",
        "",
        f"folder = Path({path(folder)!r}){hint(folder)}",
        f"opened = opened_from(folder, folder.name{how_read(forward.is_prompt)})",
        f"forward = run_text(opened, {texts})",
        f"stages = PassValues(forward, {head}, {token}, lambda sites: recorded(forward, sites))",
        f"values = stages[{shown.name!r}]  # not recorded by the trace",
        "print(values.shape, values)",
    ]
    return "\n".join(lines) + "\n"


def training(spec: RunSpec, tokenizer: str | None = None) -> str:
    """The training that the form asks for; what the reader gave is named and not copied."""
    is_own = spec.task not in TASKS
    if spec.parent:
        return _fine_tuning(spec, is_own)
    given = ", text" if is_own else ""
    if tokenizer:
        is_trained = tokenizer in (WORDS, SUBWORDS)
        given += f", {tokenizer!r}" if is_trained else ', open("tokenizer.json").read()'
    lines = [
        *(['text = open("your-text.txt").read()  # the text that the form was given'] * is_own),
        f"task = task_of({spec.task!r}{given})",
        f"config = task.model.replace({_changes(spec, 'model')})",
        f"settings = task.training.replace({_changes(spec, 'training')})",
        f"model = Transformer(config, seed={spec.weights_seed})",
        "losses = []",
        "for report in train(model, lambda step: task.batch(step, settings), settings):",
        "    losses.append(report.loss)",
        "    print(report.step, report.loss)",
    ]
    return script(
        lines,
        "from explorer.tasks import task_of",
        "from models import Transformer",
        "from models.training import train",
    )


def _fine_tuning(spec: RunSpec, is_own: bool) -> str:
    """The same from a trained model."""
    fields = [each for each in TRAINING_SETTINGS if each.field in spec.training.to_dict()]
    settings = {each.name: getattr(spec.training, each.field) for each in fields}
    settings |= {"weights_seed": spec.weights_seed, "lora_rank": spec.lora_rank}
    if spec.lora_rank:
        settings |= {"lora_alpha": spec.lora_alpha, "lora_targets": spec.lora_targets}
    model = "with_head(opened.model, spec)"
    lines = [
        *(['text = open("your-text.txt").read()  # the text that the form was given'] * is_own),
        f"opened = open_model({spec.parent!r})",
        f"task = task_for(opened, {spec.task!r}{', text' if is_own else ''})",
        f"spec = finetune_spec(opened, task, {settings!r})",
        f"model = {f'spec.adapt({model})' if spec.lora_rank else model}",
        "losses = []",
        "batch = partial(task.batch, training=spec.training)",
        "for report in train(model, batch, spec.training):",
        "    losses.append(report.loss)",
        "    print(report.step, report.loss)",
    ]
    return script(
        lines,
        "from functools import partial",
        "from explorer.catalog.opened_model import open_model",
        "from explorer.runs.finetuning import finetune_spec",
        "from explorer.runs.parent import task_for, with_head",
        "from models.training import train",
    )


def _changes(spec: RunSpec, part: str) -> str:
    """What the form changed of the task's own settings."""
    mine = getattr(spec, part).to_dict()
    theirs = getattr(TASKS[spec.task], part).to_dict() if spec.task in TASKS else {}
    skipped = () if theirs else ("vocab_size", "src_vocab_size", "pad_id", "bos_id", "generation")
    return ", ".join(
        f"{name}={value!r}"
        for name, value in mine.items()
        if name not in skipped and (not theirs or theirs.get(name) != value)
    )
