"""A checkpoint folder: what is saved comes back, bit for bit."""

import json
import os
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from models import Transformer, load_checkpoint, save_checkpoint
from models.config import OPTIMIZERS, TrainConfig
from models.loading.checkpoint import CheckpointError, load_state, peek
from models.training import TrainState, train
from tests.models.grid import ODDITIES
from tests.models.test_training import batch_at
from tests.tiny import SMALL, assert_equal_weights, inputs_of, shake, shaken, weights

FOUR_FILES = {"config.json", "model.safetensors", "run.json", "tokenizer.json"}


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.usefixtures("shapes_unchecked")
def test_round_trip(tmp_path: Path) -> None:
    run = {"task": "reverse", "goal": 0.99, "data": {"by": "Ada 🙂"}}
    for name, config in ODDITIES.items():
        model, folder = shaken(config, torch.float32), tmp_path / "deep" / name
        save_checkpoint(folder, model, tokenizer='{"é": 1}', run=run)
        opened: Any = load_checkpoint(str(folder))
        assert opened.folder == folder
        assert (opened.config, opened.run, opened.tokenizer.text) == (config, run, '{"é": 1}')
        assert (opened.family, opened.unused) == ("ours", ())
        assert not opened.model.training
        assert_equal_weights(weights(opened.model), weights(model))
        inputs = inputs_of(config)
        assert torch.equal(opened.model(*inputs), model(*inputs)), "tables no file holds are there"
        assert names(folder) == FOUR_FILES


def test_a_tokenizer_that_is_not_read_is_refused_by_name_when_it_is_used(ours: Path) -> None:
    for name, words in {
        "tokenizer.json": "tokenizer.json in one does not describe a tokenizer.",
        "vocab.txt": "one has no tokenizer.json but vocab.txt, which the app reads",
    }.items():
        (ours / "tokenizer.json").rename(ours / name)
        tokenizer: Any = load_checkpoint(ours).tokenizer
        with pytest.raises(CheckpointError, match=words):
            tokenizer.encode("the cat")


def test_peeking_reads_no_weights(ours: Path) -> None:
    (ours / "model.safetensors").unlink()
    assert peek(ours) == (SMALL, {"a": 1})


def test_a_loaded_model_needs_its_file_no_more(ours: Path) -> None:
    """A memory-mapped file that is cut short would kill the process."""
    before = torch.get_rng_state()
    model = load_checkpoint(ours).model
    assert torch.equal(before, torch.get_rng_state())
    os.truncate(ours / "model.safetensors", 0)
    assert model(*inputs_of(SMALL)).isfinite().all()
    next(train(model, batch_at, TrainConfig(steps=1)))


def test_saving_replaces_the_whole_folder(tmp_path: Path) -> None:
    state = TrainState.fresh(Transformer(SMALL), TrainConfig())
    save_checkpoint(tmp_path / "one", Transformer(SMALL), tokenizer="{}", state=state)
    save_checkpoint(tmp_path / "one", Transformer(SMALL, seed=1))
    assert names(tmp_path / "one") == FOUR_FILES - {"tokenizer.json"}
    opened = load_checkpoint(tmp_path / "one")
    assert (opened.run, opened.tokenizer) == ({}, None)
    assert names(tmp_path) == {"one"}, "nothing is left beside it"
    (tmp_path / "one").rename(tmp_path / ".one-a_1b2c3d-old")  # killed between two renames
    assert_equal_weights(weights(load_checkpoint(tmp_path / "one").model), weights(opened.model))


def test_a_failed_save_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Transformer(SMALL)
    save_checkpoint(tmp_path / "one", model, run={"first": True})

    def full(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr("models.loading.checkpoint.save_file", full)
    with pytest.raises(OSError, match="No space"):
        save_checkpoint(tmp_path / "one", shake(Transformer(SMALL)), run={"second": True})
    opened = load_checkpoint(tmp_path / "one")
    assert opened.run == {"first": True}
    assert_equal_weights(weights(opened.model), weights(model))
    assert names(tmp_path) == {"one"}


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize(
    ("optimizer", "momentum"), [*((each, 0.9) for each in OPTIMIZERS), ("sgd", 0)]
)
def test_resuming_is_going_on_bit_for_bit(optimizer: str, momentum: float, tmp_path: Path) -> None:
    config = TrainConfig(steps=8, warmup=2, optimizer=optimizer, schedule="cosine", seed=7)
    config = config.replace(momentum=momentum)
    straight, stopped = (Transformer(SMALL.replace(dropout=0.3)) for _ in range(2))
    expected = [(each.step, each.loss, each.lr) for each in train(straight, batch_at, config)]
    state = TrainState.fresh(stopped, config)
    first = list(islice(train(stopped, batch_at, config, state), 3))
    save_checkpoint(tmp_path / "one", stopped, state=state)
    torch.manual_seed(1234)
    opened = load_checkpoint(tmp_path / "one").model
    state = load_state(tmp_path / "one", opened, config)
    assert state.step == 3
    rest = list(train(opened, batch_at, config, state))
    assert [(each.step, each.loss, each.lr) for each in first + rest] == expected
    assert_equal_weights(weights(opened), weights(straight))


BAD_STATES = {
    '{"step": true}': "names no step",
    "{}": "in one names no step",
    '{"step": -1}': "names no step.",
    "[3]": "must be a JSON object",
    '{"step": ' + "9" * 5000 + "}": "not readable",
}


def test_a_state_is_not_pickled_and_a_wrong_or_damaged_one_is_said(tmp_path: Path) -> None:
    config, model, folder = TrainConfig(), Transformer(SMALL), tmp_path / "one"
    state = TrainState.fresh(model, config)
    next(train(model, batch_at, config, state))
    save_checkpoint(folder, model, state=state)
    assert names(folder) == FOUR_FILES - {"tokenizer.json"} | {"state.json", "state.safetensors"}
    assert json.loads((folder / "state.json").read_text()) == {"step": 1}
    another = "of another model or optimizer"

    def assert_refused(words: str, model: Any = model, config: TrainConfig = config) -> None:
        with pytest.raises(CheckpointError, match=words):
            load_state(folder, model, config)

    assert_refused(another, config=config.replace(optimizer="sgd"))
    assert_refused(another, Transformer(SMALL.replace(d_ff=24)))
    for text, words in BAD_STATES.items():
        (folder / "state.json").write_text(text)
        assert_refused(words)
    (folder / "state.json").write_text('{"step": 1}')
    file = folder / "state.safetensors"
    memory = load_file(file)
    save_file({name: memory[name] for name in sorted(memory)[3:]}, file)
    assert_refused(another)  # it forgot a parameter
    os.truncate(file, file.stat().st_size // 2)
    assert_refused("is damaged")
    file.unlink()
    assert_refused(r"one has no readable state\.safetensors")
    (folder / "state.json").unlink()
    assert_refused(r"one has no readable state\.json")
