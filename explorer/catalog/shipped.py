"""Train the models that ship with the app and write their folders.

The same command gives the same weights on the same machine: data, initial weights and dropout
follow from seeds, and torch uses one thread.
"""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from explorer.tasks.recipes import RECIPES, Recipe
from explorer.tasks.task import Task
from explorer.tasks.task_metrics import standard_error
from explorer.text import TextError
from models import Transformer, save_checkpoint
from models.training import train

SHIPPED = Path(__file__).resolve().parents[2] / "models" / "checkpoints"

Progress = Callable[[str, int, int, float], None]
"""Called after every step with the model's name, the step, the number of steps, the loss."""


def make_shipped(
    names: Sequence[str] = (),
    data_dir: Path | None = None,
    out_dir: Path = SHIPPED,
    progress: Progress | None = None,
) -> list[Path]:
    """Train the named models, or all of them, and write a folder for each into `out_dir`.

    Two of them are trained on a file in `data_dir`. Before any training, a ValueError says in one
    sentence if a name is unknown or a file is missing.
    """
    for name in names:
        if name not in RECIPES:
            known = ", ".join(RECIPES)
            raise TextError(f"No shipped model is called {name!r}; there are {known}.")
    recipes = [RECIPES[name] for name in names or RECIPES]
    texts = [_read(recipe, data_dir) for recipe in recipes]
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # it then adds in one order, so the weights are the same every time
    try:
        return [
            _make(recipe, text, Path(out_dir), progress)
            for recipe, text in zip(recipes, texts, strict=True)
        ]
    finally:
        torch.set_num_threads(before)


def _read(recipe: Recipe, data_dir: Path | None) -> str | None:
    if recipe.file is None:
        return None
    if data_dir is None or not (path := Path(data_dir) / recipe.file).is_file():
        raise TextError(f"{recipe.name} is trained on {recipe.file}; name its folder with --data.")
    return path.read_text(encoding="utf-8")


def _make(recipe: Recipe, text: str | None, out_dir: Path, progress: Progress | None) -> Path:
    task = recipe.task(text)
    model = Transformer(task.model, seed=recipe.weights_seed)
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(recipe.averaging))
    loss = float("nan")
    for report in train(model, lambda step: task.batch(step, task.training), task.training):
        loss = report.loss
        if recipe.averaging:
            average.update_parameters(model)
        if progress is not None:
            progress(recipe.name, report.step, task.training.steps, loss)
    if recipe.averaging:
        model.load_state_dict(average.module.state_dict())
    run = training_record(recipe, task, model, text) | {"loss": loss}
    folder = out_dir / recipe.name
    save_checkpoint(folder, model, tokenizer=task.tokenizer.to_json(), run=run)
    return folder


def training_record(
    recipe: Recipe, task: Task, model: Transformer, text: str | None
) -> dict[str, Any]:
    """The contents of `run.json`: enough to train the model again and to judge it."""
    measured = task.measure(model)
    baseline = recipe.baseline(text) if recipe.baseline and text is not None else None
    return {
        "title": task.title,
        "task": task.name,
        "explanation": task.explanation,
        "expectation": task.expectation,
        "example": task.example,
        "examples": list(task.examples),
        "classes": list(recipe.classes or task.classes),
        "command": recipe.command,
        "weights_seed": recipe.weights_seed,
        "training": task.training.to_dict(),
        **({"averaging": recipe.averaging} if recipe.averaging else {}),
        "steps": task.training.steps,
        "parameters": model.n_parameters,
        "metrics": {measured.name: measured.value},
        "standard_error": standard_error(task.metric[1], model, task.held_out_batch),
        "held_out": task.held_out,
        "baseline": None if baseline is None else {"name": baseline.name, "value": baseline.value},
        "data": {
            "attribution": recipe.attribution,
            "file": recipe.file,
            "sha256": None if text is None else hashlib.sha256(text.encode()).hexdigest(),
        },
        "torch": str(torch.__version__),
    }
