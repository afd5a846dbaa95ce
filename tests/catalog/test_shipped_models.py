"""The shipped models reach what their run.json says, and their attention shows what it should."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from explorer.catalog.shipped import SHIPPED
from explorer.tasks import TASKS, pattern_score
from explorer.tasks.recipes import RECIPES
from explorer.text import Token, Tokenizer
from models import Transformer, load_checkpoint, trace
from models.training import TrainConfig

BY_PROGRAM = [name for name, recipe in RECIPES.items() if recipe.file is None]
FROM_FILES = [name for name, recipe in RECIPES.items() if recipe.file is not None]
FIGURES = {
    "reverse": 1.0,
    "induction": 0.997,
    "induction-learned": 0.997,
    "negation": 1.0,
    "translation": 1.0,
}
"""What TASKS.md saw on held-out data."""
LEARNS_INDUCTION = ("induction", "induction-learned")

DATA = Path(os.environ.get("EXPLORER_DATA") or SHIPPED.parents[2] / "shared" / "data")


def opened(name: str) -> tuple[Transformer, Tokenizer, dict[str, Any]]:
    checkpoint = load_checkpoint(SHIPPED / name)
    assert checkpoint.tokenizer is not None
    return checkpoint.model.eval(), Tokenizer.from_json(checkpoint.tokenizer), checkpoint.run


def attention(name: str, text: str) -> tuple[Sequence[Token], Sequence[Token], Tensor]:
    """What the model read, what it wrote (without the end), and every head's weights."""
    model, tokenizer, _ = opened(name)
    source = tokenizer.encode(text)
    ids = torch.tensor([[token.id for token in source]])
    site = RECIPES[name].task(None).pattern_site
    if model.config.kind != "encoder-decoder":
        return source, (), trace(model, ids).weights(site)[0]
    written = model.generate(ids, max_length=model.config.max_len, temperature=0)[0].tolist()
    outer = (tokenizer.pad_id, tokenizer.eos_id)
    target = [tokenizer.token(number) for number in written if number not in outer]
    passed = trace(model, ids, torch.tensor([[token.id for token in target]]))
    return source, target, passed.weights(site)[0]


def test_a_shipped_folder_is_small_and_says_how_it_was_made() -> None:
    told = {"task", "weights_seed", "training", "steps", "metrics", "held_out", "data"}
    together = 0
    for name in RECIPES:
        files = {path.name: path.stat().st_size for path in (SHIPPED / name).iterdir()}
        assert files.keys() == {"config.json", "model.safetensors", "tokenizer.json", "run.json"}
        assert sum(files.values()) < 8_000_000
        together += sum(files.values())
        _, _, run = opened(name)
        assert told <= run.keys()
        text = json.dumps(run)
        assert "attribution" in text
        assert f"--only {name}" in text
    assert together < 20_000_000


def test_the_figure_in_run_json_is_what_the_weights_reach(subtests: pytest.Subtests) -> None:
    for name in BY_PROGRAM:
        with subtests.test(name=name):
            model, tokenizer, run = opened(name)
            task = RECIPES[name].task(None)
            assert tokenizer.to_json() == task.tokenizer.to_json()
            assert model.config == task.model
            measured = task.measure(model)
            assert run["metrics"] == {measured.name: pytest.approx(measured.value, abs=1e-3)}
            if name in FIGURES:
                assert measured.value >= FIGURES[name]


def test_one_layer_stays_far_below_two() -> None:
    values = {}
    for name in ("induction", "induction-control"):
        values[name] = TASKS[name].measure(opened(name)[0]).value
    assert values["induction-control"] < 0.65
    assert values["induction"] > values["induction-control"] + 0.3


def test_twins_differ_in_their_positions_alone() -> None:
    twins = [recipe for recipe in RECIPES.values() if recipe.twin_of]
    assert "learned" in {recipe.positions for recipe in twins}
    for recipe in twins:
        (own, _, run), (other, _, its) = opened(recipe.name), opened(recipe.twin_of)
        assert own.config == other.config.replace(positions=recipe.positions)
        assert own.config.positions != other.config.positions
        for same in ("task", "steps", "weights_seed", "held_out", "examples"):
            assert run[same] == its[same]
        training, its_training = (TrainConfig(**each["training"]) for each in (run, its))
        assert training == its_training
        assert str(run["title"]).endswith(f", {recipe.positions} positions")
        assert recipe.twin_of in str(run["explanation"])


def test_models_of_real_text_reach_their_figure(subtests: pytest.Subtests) -> None:
    for name in FROM_FILES:
        with subtests.test(name=name):
            recipe = RECIPES[name]
            assert recipe.file is not None
            assert recipe.baseline is not None
            path = DATA / recipe.file
            if not path.is_file():
                pytest.skip(f"needs {recipe.file}; EXPLORER_DATA names its folder")
            text = path.read_text(encoding="utf-8")
            model, tokenizer, run = opened(name)
            task = recipe.task(text)
            assert tokenizer.to_json() == task.tokenizer.to_json()
            measured, baseline = task.measure(model), recipe.baseline(text)
            assert run["metrics"] == {measured.name: pytest.approx(measured.value, abs=2e-3)}
            assert run["baseline"] == {
                "name": baseline.name,
                "value": pytest.approx(baseline.value),
            }
            if task.higher_is_better:
                assert measured.value >= baseline.value - 0.02
            else:
                assert measured.value <= baseline.value - 0.4


def test_reverse_runs_down_the_anti_diagonal() -> None:
    for word in TASKS["reverse"].examples:
        source, target, weights = attention("reverse", word)
        pattern = TASKS["reverse"].pattern(source, target)
        assert pattern is not None
        assert max(pattern_score(head, pattern) for head in weights) > 0.9
        assert pattern_score(weights.mean(0), pattern) > 0.65


def test_induction_needs_both_layers() -> None:
    """Layer 0 looks at the letter before, layer 1 after the previous copies; one layer cannot."""
    task = TASKS["induction"]
    for text in task.examples:
        for name in LEARNS_INDUCTION:
            source, _, weights = attention(name, text)
            pattern = task.pattern(source)
            assert pattern is not None
            assert pattern_score(weights.mean(0), pattern) > 0.9, name
        source, _, control = attention("induction-control", text)
        pattern = task.pattern(source)
        assert pattern is not None
        assert max(pattern_score(head, pattern) for head in control) < 0.4
    for name in LEARNS_INDUCTION:
        model, tokenizer, _ = opened(name)
        ids = torch.tensor([tokenizer.ids("wordplaywordplay")])
        first = trace(model, ids).weights("decoder.0.self_attn")[0]
        before = max(first, key=lambda head: head.diagonal(-1).mean().item())
        assert before.diagonal(-1).mean() > 0.4
        assert (before.argmax(-1)[1:] == torch.arange(before.shape[0] - 1)).float().mean() > 0.7


def test_negation_has_a_head_for_the_adjective_and_one_for_not() -> None:
    source, _, weights = attention("negation", "the food was not very good")
    words = [token.label for token in source]
    from_cls = weights[:, 0]
    assert from_cls[:, words.index("good")].max() > 0.7
    assert from_cls[:, words.index("not")].max() > 0.7


def test_translation_crosses() -> None:
    text = "the black cat does not see the white house"
    source, target, weights = attention("translation", text)
    words, written = ([token.label for token in tokens] for tokens in (source, target[1:]))
    assert " ".join(written) == "le chat noir ne voit pas la maison blanche"
    for french, english, least in [
        ("chat", "cat", 0.7),
        ("noir", "black", 0.8),
        ("maison", "house", 0.4),
    ]:
        looking = weights.mean(0)[written.index(french)]
        assert looking.argmax() == words.index(english)
        assert looking.max() > least
