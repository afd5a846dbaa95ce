"""The models that come with the app, and their tokenizers."""

import dataclasses
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from explorer.catalog.model_descriptions import examples_for
from explorer.catalog.shipped import SHIPPED, make_shipped
from explorer.catalog.tokenizers import TypedTokenIds, tokenizer_of
from explorer.tasks import TASKS, pattern_score
from explorer.tasks.recipes import RECIPES
from explorer.tasks.task_metrics import standard_error
from explorer.text import TextError, Token, Tokenizer
from models import Transformer, trace
from models.config import TrainConfig
from models.loading.checkpoint import load_checkpoint
from models.loading.checkpoint_tokenizer import TOKENIZER_FILES
from models.training import train
from tests.closeness import assert_close_to

LEARNS_INDUCTION = ("induction", "induction-learned")
EXACT = ("reverse", "negation", "translation")
FIGURES = dict.fromkeys(EXACT, 1.0) | dict.fromkeys(LEARNS_INDUCTION, 0.997)
"""What TASKS.md saw on held-out data."""

DATA = Path(os.environ.get("EXPLORER_DATA") or SHIPPED.parents[2] / "shared" / "data")


def opened(name: str) -> tuple[Transformer, Tokenizer, dict[str, Any]]:
    checkpoint: Any = load_checkpoint(SHIPPED / name)
    return checkpoint.model.eval(), Tokenizer.from_json(checkpoint.tokenizer.text), checkpoint.run


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


def test_the_core_reads_and_writes_texts_as_the_app_does() -> None:
    text = "the black cat; THE <s>Cat</s>, é🙂 <unk>\n12  <pad>"
    for name in RECIPES:
        core: Any = load_checkpoint(SHIPPED / name).tokenizer
        app, ids = opened(name)[1], core.encode(text)
        assert (ids, core.decode(ids)) == (app.ids(text), app.decode(ids))
        assert core.tokens(text) == core.tokens(torch.tensor(ids))


def test_a_shipped_folder_is_small_and_says_how_it_was_made() -> None:
    told = {"task", "weights_seed", "training", "steps", "metrics", "held_out", "data"}
    together = 0
    assert {folder.name for folder in SHIPPED.iterdir()} == RECIPES.keys()
    for name, recipe in RECIPES.items():
        assert recipe.attribution
        assert (recipe.file is None) == (recipe.baseline is None)
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
    for name in [name for name, recipe in RECIPES.items() if recipe.file is None]:
        with subtests.test(name=name):
            model, tokenizer, run = opened(name)
            task = RECIPES[name].task(None)
            assert tokenizer.to_json() == task.tokenizer.to_json()
            assert model.config == task.model
            measured = task.measure(model)
            assert run["metrics"] == {measured.name: pytest.approx(measured.value, abs=1e-3)}
            error = standard_error(task.metric[1], model, task.held_out_batch)
            assert run["standard_error"] == pytest.approx(error, abs=1e-3)
            if name in FIGURES:
                assert measured.value >= FIGURES[name]


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
    for name, recipe in RECIPES.items():
        if recipe.file is None:
            continue
        with subtests.test(name=name):
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
            value = pytest.approx(baseline.value)
            assert run["baseline"] == {"name": baseline.name, "value": value}
            if task.higher_is_better:
                assert measured.value >= baseline.value - 0.02
            else:
                assert measured.value <= baseline.value - 0.4


def test_reverse_runs_down_the_anti_diagonal() -> None:
    for word in TASKS["reverse"].examples:
        source, target, weights = attention("reverse", word)
        pattern = TASKS["reverse"].pattern(source, target)
        assert pattern is not None
        assert pattern_score(weights, pattern).max() > 0.9
        assert pattern_score(weights.mean(0), pattern) > 0.65


def test_induction_needs_both_layers() -> None:
    """Layer 0 looks at the letter before, layer 1 after the previous copies; one layer cannot."""
    task = TASKS["induction"]
    (reached,) = opened("induction-control")[2]["metrics"].values()
    assert reached < 0.65
    for text in task.examples:
        source, _, control = attention("induction-control", text)
        pattern = task.pattern(source)
        assert pattern is not None
        assert pattern_score(control, pattern).max() < 0.4
        for name in LEARNS_INDUCTION:
            _, _, weights = attention(name, text)
            assert pattern_score(weights.mean(0), pattern) > 0.9, name
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
    expected = [("chat", "cat", 0.7), ("noir", "black", 0.8), ("maison", "house", 0.4)]
    for french, english, least in expected:
        looking = weights.mean(0)[written.index(french)]
        assert looking.argmax() == words.index(english)
        assert looking.max() > least


def test_a_command_gives_the_same_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS["reverse"].__dict__, "training", TrainConfig(steps=3, batch_size=8))
    heard: list[tuple[str, int, int]] = []
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        make_shipped(["reverse"], out_dir=folder, progress=lambda *report: heard.append(report[:3]))
    for file in ("model.safetensors", "config.json", "tokenizer.json", "run.json"):
        assert (one / "reverse" / file).read_bytes() == (two / "reverse" / file).read_bytes(), file
    assert heard[:3] == [("reverse", 1, 3), ("reverse", 2, 3), ("reverse", 3, 3)]


def test_a_recipe_may_keep_average_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_stranger_is_read_with_its_tokenizer_or_as_numbers(published: Path) -> None:
    read = tokenizer_of(load_checkpoint(published / "bert")).encode("The cat", "a dog")
    assert [token.label for token in read] == "[CLS] the cat [SEP] a dog [SEP]".split()
    numbers = tokenizer_of(load_checkpoint(published / "gpt2"))
    assert isinstance(numbers, TypedTokenIds)
    assert numbers.vocab_size == 50


def test_a_damaged_tokenizer_is_no_reason_for_numbers(published: Path, tmp_path: Path) -> None:
    for name in TOKENIZER_FILES:
        (folder := tmp_path / name).mkdir()
        for file in ("config.json", "model.safetensors"):
            (folder / file).hardlink_to(published / "gpt2" / file)
        (folder / name).write_text('"no tokenizer"')
        with pytest.raises(TextError, match=r"\.$"):
            tokenizer_of(load_checkpoint(folder))


def test_every_example_is_read_by_its_model(published: Path) -> None:
    for name in ["bert", "gpt2", "t5"]:
        found = load_checkpoint(published / name)
        tokenizer = tokenizer_of(found)
        for text in examples_for(found.config, found.family, found.folder):
            tokens = tokenizer.encode(text)
            assert 1 < len(tokens) <= found.config.max_len
            known = found.config.src_vocab_size or found.config.vocab_size
            assert all(token.id < known for token in tokens)
            if found.config.head == "masked-language-model":
                assert [token.id for token in tokens].count(tokenizer.mask_id or -1) == 1
    for size in [1, 2, 4, 1000]:
        config = load_checkpoint(published / "gpt2").config.replace(vocab_size=size)
        (text,) = examples_for(config, "gpt2", published / "gpt2")
        assert all(int(number) < size for number in text.split())


def test_the_mask_is_written_as_the_family_writes_it(published: Path) -> None:
    found = load_checkpoint(published / "bert")
    for family, mask in {
        **dict.fromkeys(["bert", "distilbert"], "[MASK]"),
        **dict.fromkeys(["roberta", "xlm-roberta", "camembert"], "<mask>"),
    }.items():
        assert all(mask in text for text in examples_for(found.config, family, found.folder))
