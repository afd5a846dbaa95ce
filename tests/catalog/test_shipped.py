"""The command that makes the shipped models: the same twice, and clear about what it lacks."""

import dataclasses
import json
from pathlib import Path

import pytest
import torch

from explorer.catalog.shipped import make_shipped
from explorer.tasks import TASKS
from explorer.tasks.recipes import RECIPES
from explorer.text import TextError
from models import Transformer, load_checkpoint
from models.training import TrainConfig, train
from tests.closeness import assert_close_to


def test_the_same_command_gives_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three steps instead of hundreds."""
    few = TrainConfig(steps=3, batch_size=8)
    monkeypatch.setitem(TASKS["reverse"].__dict__, "training", few)
    heard: list[tuple[str, int, int]] = []
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        make_shipped(["reverse"], out_dir=folder, progress=lambda *report: heard.append(report[:3]))
    for file in ("model.safetensors", "config.json", "tokenizer.json", "run.json"):
        assert (one / "reverse" / file).read_bytes() == (two / "reverse" / file).read_bytes(), file
    assert heard[:3] == [("reverse", 1, 3), ("reverse", 2, 3), ("reverse", 3, 3)]


def test_a_recipe_may_keep_the_average_of_the_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It begins with the weights of the first step; each later step moves it by the rest."""
    few = {"steps": 3, "batch_size": 8}
    recipe = dataclasses.replace(RECIPES["reverse"], training=few, averaging=0.75)
    monkeypatch.setitem(RECIPES, "reverse", recipe)
    make_shipped(["reverse"], out_dir=tmp_path)
    task = recipe.task(None)
    model, average = Transformer(task.model, seed=recipe.weights_seed), dict[str, torch.Tensor]()
    for _ in train(model, lambda step: task.batch(step, task.training), task.training):
        for name, weight in model.named_parameters():
            now = weight.detach().clone()
            average[name] = torch.lerp(average.get(name, now), now, 0.25)
    kept = dict(load_checkpoint(tmp_path / "reverse").model.named_parameters())
    for name, averaged in average.items():
        assert_close_to(kept[name].detach(), averaged)
    run = json.loads((tmp_path / "reverse" / "run.json").read_text())
    assert run["averaging"] == recipe.averaging
    assert few.items() <= run["training"].items()


def test_what_is_missing_is_said_before_anything_is_trained(tmp_path: Path) -> None:
    def never(*report: object) -> None:
        raise AssertionError("training began")

    with pytest.raises(TextError, match="No shipped model is called 'poetry'; there are reverse"):
        make_shipped(["reverse", "poetry"], out_dir=tmp_path, progress=never)
    with pytest.raises(TextError, match=r"is trained on shakespeare\.txt; name its folder"):
        make_shipped(["reverse", "shakespeare"], out_dir=tmp_path, progress=never)
    with pytest.raises(TextError, match=r"reviews is trained on sentiment\.csv"):
        make_shipped(["reviews"], data_dir=tmp_path, out_dir=tmp_path, progress=never)
    assert not list(tmp_path.iterdir())


def test_every_recipe_names_its_data() -> None:
    for recipe in RECIPES.values():
        assert recipe.attribution
        assert (recipe.file is None) == (recipe.baseline is None)
