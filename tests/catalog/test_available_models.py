"""The models that are listed, the pretrained ones among them."""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

from explorer.analysis.default_head import default_head
from explorer.app import reader_models
from explorer.catalog import ModelError, available_models, folders, opened_model, uploads
from explorer.catalog.available_models import ModelEntry
from explorer.catalog.folders import is_hub_id
from explorer.catalog.model_descriptions import config_sentences, held_out_score, in_short
from explorer.catalog.opened_model import open_checkpoint
from explorer.catalog.pretrained_models import FIRST, PRETRAINED_MODELS, Package
from explorer.inference.forward_pass import run_text
from explorer.system import data_folders
from explorer.tasks import TASKS
from models import TransformerConfig
from models.config import RopeScaling
from tests import tiny
from tests.catalog.test_uploads import keep
from tests.models.grid import CHOICES
from tests.source import ROOT
from tests.tiny import NAMES


@pytest.fixture
def shipped(small_models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Models of our own that a test may change."""
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path / "shipped"))
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path / "runs"))
    return Path(shutil.copytree(small_models, tmp_path / "shipped"))


@pytest.fixture
def folder(shipped: Path, published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The models of others, which a test may change; the app was started for them."""
    monkeypatch.setenv("EXPLORER_MODELS", str(tmp_path / "zoo"))
    return Path(shutil.copytree(published, tmp_path / "zoo"))


def found(*brought: Path) -> dict[str, ModelEntry]:
    return {entry.name: entry for entry in available_models.list_models(brought=brought)}


def test_what_the_list_has(shipped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "runs" / "reverse-1"
    run.mkdir(parents=True)
    assert next(iter(found())) == "translation"
    assert sorted(found()) == sorted(NAMES)
    (shipped / "reverse").rename(run / "checkpoint")
    assert list(found())[-1] == "reverse-1"
    assert "reverse" not in found()
    assert opened_model.open_model("reverse-1").example == "31415"
    for name in ["nothing", "../reviews", "", "x" * 500]:
        with pytest.raises(ModelError, match="There is no model called"):
            opened_model.open_model(name)
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path / "nothing"))
    assert list(found()) == ["reverse-1"]


def test_a_model_is_opened_once_until_its_files_change(shipped: Path) -> None:
    first = opened_model.open_model("reviews")
    assert opened_model.open_model("reviews") is first
    run = shipped / "reviews" / "run.json"
    run.write_text(json.dumps({**json.loads(run.read_text()), "title": "Other"}))
    assert opened_model.open_model("reviews").title == "Other"


def test_a_damaged_model_is_one_sentence_and_the_rest_goes_on(shipped: Path) -> None:
    (shipped / "reviews" / "config.json").write_text('{"surprise": 1}')
    assert found()["reviews"].config is None
    assert found()["reviews"].fault
    shutil.copy(shipped / "translation" / "tokenizer.json", shipped / "reverse")
    (shipped / "letters" / "tokenizer.json").write_bytes(b"nonsense")
    for name, why in (("letters", r"\w\.$"), ("reverse", "more tokens"), ("reviews", "keys")):
        with pytest.raises(ModelError, match=why):
            opened_model.open_model(name)
    assert opened_model.open_model("translation")


def test_a_record_from_anywhere_stays_short(shipped: Path) -> None:
    words = {"title": "a" * 200_000, "example": {"b": 1}, "examples": ["c" * 90_000, 3] * 4}
    (shipped / "letters" / "run.json").write_text(json.dumps(words))
    (shipped / "reverse" / "run.json").write_text(json.dumps({"title": ["x"], "example": "1\n2"}))
    letters, reverse = found()["letters"], found()["reverse"]
    assert letters.title == "a" * available_models.TITLE_LIMIT
    assert letters.examples == ("c" * available_models.EXAMPLE_LIMIT,)
    assert (reverse.example, reverse.title) == ("1 2", TASKS["reverse"].title)


def test_what_was_measured_is_shown_and_strange_records_are_not() -> None:
    run = {"metrics": {"nats a token": 3.701}, "baseline": {"name": "bigram", "value": 4.13}}
    assert held_out_score(run) == "nats a token 3.70 (bigram: 4.13)"
    unmeasured: list[Any] = [{}, {"metrics": []}, *({"metrics": {"x": n}} for n in ("y", 10**400))]
    assert {*map(held_out_score, unmeasured)} == {"not measured"}
    baseline = {"name": "bigram", "value": 10**400}
    assert held_out_score(run | {"baseline": baseline}) == "nats a token 3.70"


ROTARY: dict[str, Any] = {"positions": "rotary"}
RARE: list[tuple[dict[str, Any], str]] = [
    ({"tie_embeddings": True}, "unembedding tied to the token embedding"),
    ({"n_segments": 2}, "embeddings of 2 segments"),
    ({"attention_cap": 50.0, "logit_cap": 30.0}, "scores soft-capped at ±50, logits"),
    ({"windows": (0, 4096)}, "a sliding window of 4,096 tokens in 1 of 2 layers"),
    (ROTARY | {"rope_scaling": RopeScaling("yarn", 4.0)}, "rotations scaled 4 times (yarn)"),
    ({"kind": "encoder-decoder", "share_embeddings": True}, "one embedding shared by both stacks"),
    ({"d_ff": 3072, "d_model": 1024}, "d_model 1,024, feed-forward width 3,072"),
]


def test_every_config_is_said_in_words_and_what_is_rare_where_it_is() -> None:
    plain = TransformerConfig()
    assert "Also" not in config_sentences(plain)
    for field, values in CHOICES.items():
        for value in values:
            assert config_sentences(plain.replace(**{field: value})).endswith(".")
            assert in_short(plain.replace(**{field: value}))
    for changes, words in RARE:
        assert words in config_sentences(plain.replace(**changes))
        assert words not in config_sentences(plain)


def test_named_folders_stand_first_and_open(folder: Path) -> None:
    entries = found(folder / "gpt2")
    assert list(entries)[:4] == ["bert", "gpt2", "t5", "torn"]
    assert sorted(list(entries)[4:]) == sorted(NAMES)
    for name in ("bert", "gpt2", "t5"):
        entry = entries[name]
        assert (entry.origin, entry.fault, entry.family) == ("named", None, name)
        opened = opened_model.open_entry(entry)
        assert opened.model.n_parameters == entry.parameters
        assert opened_model.open_model(name) is opened
        assert entry.bytes == (folder / name / "model.safetensors").stat().st_size
    shutil.rmtree(folder / "bert")
    (folder / "gpt2" / "config.json").write_text("{")
    opening = {name: entry for name, entry in found().items() if entry.config}
    assert reader_models.first(opening).name == "t5"
    with pytest.raises(ModelError, match=r"\.$"):
        opened_model.open_entry(entries["bert"])


def test_a_model_with_nan_is_listed_with_its_fault_and_not_chosen_first(folder: Path) -> None:
    name = min(path.name for path in folder.iterdir() if path.is_dir())
    path = next((folder / name).glob("*.safetensors"))
    tensors = load_file(path)
    for tensor in tensors.values():
        tensor.view(-1)[:1] = float("nan")
    save_file(tensors, path, metadata={"format": "pt"})
    assert "holds NaN" in str(found()[name].fault)
    assert reader_models.first(reader_models.openable()).name != name


def test_of_equal_names_a_named_model_gets_a_number_and_a_brought_one_a_name_of_its_own(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brought = (tmp_path / "x" / "gpt2", tmp_path / "y" / "gpt2")
    for each in brought:
        tiny.reference_gpt2(each, seed=1)
    entries = found(*brought)
    assert [entry.origin for entry in entries.values()][:3] == ["brought", "brought", "named"]
    assert [entry.title for entry in entries.values()][:2] == ["gpt2", "gpt2"]
    assert len(entries) == 6 + len(NAMES)
    one, other = (available_models.brought_model(each).name for each in brought)
    assert [entries[one].folder, entries[other].folder] == [*brought]
    assert found(*brought[::-1])[one].folder == brought[0], "whoever else brings one"
    monkeypatch.setenv("EXPLORER_MODELS", os.pathsep.join(map(str, (folder, *brought))))
    names = ("gpt2", "gpt2 (2)", "gpt2 (3)")
    assert [found()[name].folder for name in names] == [folder / "gpt2", *brought]
    assert opened_model.open_entry(found()["gpt2 (3)"]).name == "gpt2 (3)"


def test_a_model_in_many_files_is_opened_again_when_one_of_them_changes(folder: Path) -> None:
    shutil.rmtree(folder / "gpt2")
    tiny.reference_gpt2(folder / "gpt2", shards=True)
    shards = sorted((folder / "gpt2").glob("*.safetensors"))
    entry = found()["gpt2"]
    assert entry.bytes == sum(shard.stat().st_size for shard in shards)
    one = opened_model.open_entry(entry).model.state_dict()
    shards[-1].rename(folder / "away")
    with pytest.raises(ModelError, match=r"^The model gpt2 cannot be opened: .*\.$"):
        opened_model.open_entry(entry)
    (folder / "away").rename(shards[-1])
    assert found()["gpt2"].fault is None
    tiny.reference_gpt2(folder / "gpt2", seed=1, shards=True)
    other = opened_model.open_model("gpt2").model.state_dict()
    assert not any(one[name].equal(other[name]) for name in one if one[name].dim() == 2)


def test_what_another_reader_uploaded_is_in_no_list(folder: Path) -> None:
    files = {file.name: file.read_bytes() for file in (folder / "gpt2").iterdir()}
    kept = keep(data_folders.uploads_root(), files)
    name = folders.model_name(kept)
    assert name.startswith("model-upload-")
    assert name not in found()
    assert uploads.find_upload(name) == kept
    assert (found(kept)[name].fault, found(kept)[name].title) == (None, "model")
    assert opened_model.open_entry(available_models.brought_model(kept)).family == "gpt2"
    assert uploads.find_upload("../" + name) is None


ANSWERS = {
    "When Mary and John went to the store, John gave a drink to": " Mary",
    "The glimmerfinch sang at dawn. By noon the glimmer": "f",
    "The capital of France is": " Paris",
    "The strike went on from the year 1868 to the year 18": "7",
    "The children that the woman sees": " are",
    "x = foo(bar[3": "])",
    "big → small, hot → cold, tall →": " short",
}
"""The likeliest token after each example of SmolLM2: a circuit's, not a memorized text's."""


def test_every_row_can_be_asked_for_and_says_what_it_is() -> None:
    assert next(iter(PRETRAINED_MODELS)) == FIRST
    folders = {model.folder.name for model in PRETRAINED_MODELS.values()}
    assert len(folders) == len(PRETRAINED_MODELS)
    for name, model in PRETRAINED_MODELS.items():
        assert re.fullmatch(r"[a-z0-9.-]{3,20}", name)
        assert model.licence in ("Apache 2.0", "MIT")
        assert 10 < len(model.good_for) < 80
        assert not model.good_for.endswith(".")
        assert model.download <= 1_000_000_000
        assert len(set(model.examples)) == len(model.examples)
        if isinstance(model.source, str):
            assert is_hub_id(model.source)
        else:
            assert re.fullmatch(r"[a-z0-9-]+==[0-9.]+", model.source.requirement)
            assert re.fullmatch(r"[0-9a-f]{64}", model.source.sha256)
            assert model.source.inside.endswith("/")
    smollm2 = PRETRAINED_MODELS[FIRST]
    assert isinstance(smollm2.source, Package)
    assert smollm2.source.gguf
    assert smollm2.examples[: len(ANSWERS)] == tuple(ANSWERS)


def test_the_first_pretrained_model_answers_its_examples(subtests: pytest.Subtests) -> None:
    folder = Path(os.environ.get("EXPLORER_SMOLLM2") or ROOT / "examples" / FIRST)
    if not folder.is_dir():
        pytest.skip("needs SmolLM2 (python -m explorer get smollm2); EXPLORER_SMOLLM2 names it")
    opened = open_checkpoint(folder, FIRST)
    for text, answer in ANSWERS.items():
        with subtests.test(text=text):
            assert run_text(opened, text).answer.guesses[0].label == answer.replace(" ", "␣")
    forward = run_text(opened, next(iter(ANSWERS)))
    part, layer, head = default_head(opened)
    row = forward.trace.weights(f"decoder.{layer}.self_attn")[forward.row, head, -1]
    assert part == "decoder.self_attn"
    assert forward.tokens[int(row.argmax())].label == "␣Mary"
