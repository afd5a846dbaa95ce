"""Runs that the tests of this folder share: tiny ones, of a real task."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from explorer.catalog.opened_model import Opened
from explorer.runs.finetuning import finetune_spec
from explorer.runs.parent import task_for
from explorer.runs.run import Run, create
from explorer.runs.spec import RunSpec
from explorer.tasks import TASKS

TEXT = "the cat and the hat " * 300


def tiny_spec(name: str = "reverse", **training: Any) -> RunSpec:
    """A task with a model small enough for two milliseconds a step, and dropout."""
    task = TASKS[name]
    sizes: dict[str, Any] = {"d_model": 16, "n_heads": 2, "n_layers": 1, "d_ff": 16}
    if task.model.kind == "encoder-decoder":
        sizes["n_encoder_layers"] = 1
    model = task.model.replace(**sizes, dropout=0.1)
    settings: dict[str, Any] = {"steps": 12, "batch_size": 4, "warmup": 3, **training}
    return RunSpec(name, model, task.training.replace(**settings), weights_seed=5)


def tiny_run(
    root: Path, stop_at: float | None = None, task: str = "reverse", **training: Any
) -> Run:
    return create(root, replace(tiny_spec(task, **training), stop_at=stop_at))


def table(labels: tuple[str, ...] = ("good", "bad")) -> str:
    """Sentences in the words of the small models here, each with a label."""
    rows = [
        f"the {a} {b} {c} {d},{labels[n % len(labels)]}"
        for a in ("black", "white")
        for b in ("cat", "dog")
        for c in ("sleeps", "eats", "does")
        for n, d in enumerate(("the", "a", "cat", "dog", "not"))
    ]
    return "text,label\n" + "\n".join(rows)


def tuned_run(
    root: Path, opened: Opened, task: str = "subwords", text: str = TEXT, **settings: Any
) -> Run:
    usual = {"steps": 6, "batch_size": 2, "warmup": 1, "lr": 0.01}
    spec = finetune_spec(opened, task_for(opened, task, text), usual | settings)
    return create(root, spec, text, parent=opened)
