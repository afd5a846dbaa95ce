"""A checkpoint folder: what is saved comes back, bit for bit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from models import Transformer, load_checkpoint, save_checkpoint
from models.checkpoint import CheckpointError, load_state, peek
from models.config import TransformerConfig
from models.training import OPTIMIZERS, TrainConfig, TrainState, train
from tests.grids import grid
from tests.models.building import SMALL, inputs_of, shake, shaken
from tests.models.grid import ODD_MODELS
from tests.models.test_training import assert_equal_weights, batch_at, weights
from tests.source import ROOT

FOUR_FILES = {"config.json", "model.safetensors", "run.json", "tokenizer.json"}


@ODD_MODELS
def test_round_trip(config: TransformerConfig, tmp_path: Path) -> None:
    model = shaken(config, torch.float32)
    run = {"task": "reverse", "goal": 0.99, "data": {"by": "Ada 🙂"}}
    save_checkpoint(tmp_path / "one", model, tokenizer='{"é": 1}', run=run)
    opened = load_checkpoint(tmp_path / "one")
    assert opened.folder == tmp_path / "one"
    assert (opened.config, opened.run, opened.tokenizer) == (config, run, '{"é": 1}')
    assert (opened.family, opened.unused) == ("ours", ())
    assert not opened.model.training
    assert_equal_weights(weights(opened.model), weights(model))
    inputs = inputs_of(config)
    assert torch.equal(opened.model(*inputs), model(*inputs)), "tables no file holds are there"
    assert {path.name for path in (tmp_path / "one").iterdir()} == FOUR_FILES


def test_what_is_not_given_is_not_there(tmp_path: Path) -> None:
    save_checkpoint(str(tmp_path / "deep" / "er" / "one"), Transformer(SMALL))
    opened = load_checkpoint(str(tmp_path / "deep" / "er" / "one"))
    assert opened.tokenizer is None
    assert opened.run == {}


def test_peeking_reads_no_weights(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "one", Transformer(SMALL), run={"steps": 3})
    (tmp_path / "one" / "model.safetensors").unlink()
    assert peek(tmp_path / "one") == (SMALL, {"steps": 3})


def test_a_loaded_model_needs_its_file_no_more(tmp_path: Path) -> None:
    """A memory-mapped file that is cut short would kill the process."""
    save_checkpoint(tmp_path / "one", Transformer(SMALL))
    model = load_checkpoint(tmp_path / "one").model
    os.truncate(tmp_path / "one" / "model.safetensors", 0)
    assert model(*inputs_of(SMALL)).isfinite().all()


def test_loading_leaves_the_random_state_and_can_be_trained_on(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "one", Transformer(SMALL))
    before = torch.get_rng_state()
    model = load_checkpoint(tmp_path / "one").model
    assert torch.equal(before, torch.get_rng_state())
    assert all(parameter.requires_grad for parameter in model.parameters())
    next(train(model, batch_at, TrainConfig(steps=1)))


def test_saving_replaces_the_whole_folder(tmp_path: Path) -> None:
    state = TrainState.fresh(Transformer(SMALL), TrainConfig())
    save_checkpoint(tmp_path / "one", Transformer(SMALL), tokenizer="{}", state=state)
    save_checkpoint(tmp_path / "one", Transformer(SMALL, seed=1), run={"second": True})
    assert {path.name for path in (tmp_path / "one").iterdir()} == FOUR_FILES - {"tokenizer.json"}
    assert load_checkpoint(tmp_path / "one").run == {"second": True}
    assert [path.name for path in tmp_path.iterdir()] == ["one"], "nothing is left beside it"


def test_a_save_that_fails_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Transformer(SMALL)
    save_checkpoint(tmp_path / "one", model, run={"first": True})

    def full(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr("models.checkpoint.save_file", full)
    with pytest.raises(OSError, match="No space"):
        save_checkpoint(tmp_path / "one", shake(Transformer(SMALL)), run={"second": True})
    opened = load_checkpoint(tmp_path / "one")
    assert opened.run == {"first": True}
    assert_equal_weights(weights(opened.model), weights(model))
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


@grid("optimizer, schedule", OPTIMIZERS, ["constant", "cosine"])
def test_resuming_is_going_on_bit_for_bit(optimizer: str, schedule: str, tmp_path: Path) -> None:
    config = TrainConfig(steps=8, warmup=2, optimizer=optimizer, schedule=schedule, seed=7)
    straight, stopped = (Transformer(SMALL.replace(dropout=0.3)) for _ in range(2))
    expected = [
        (report.step, report.loss, report.lr) for report in train(straight, batch_at, config)
    ]
    state = TrainState.fresh(stopped, config)
    first = list(islice(train(stopped, batch_at, config, state), 3))
    save_checkpoint(tmp_path / "one", stopped, state=state)
    del stopped, state
    torch.manual_seed(1234)
    opened = load_checkpoint(tmp_path / "one").model
    state = load_state(tmp_path / "one", opened, config)
    assert state.step == 3
    rest = list(train(opened, batch_at, config, state))
    assert [(r.step, r.loss, r.lr) for r in first + rest] == expected
    assert_equal_weights(weights(opened), weights(straight))


def saved_state(folder: Path, config: TrainConfig) -> Transformer:
    model = Transformer(SMALL)
    state = TrainState.fresh(model, config)
    next(train(model, batch_at, config, state))
    save_checkpoint(folder, model, state=state)
    return model


BAD_STATES = {
    "names no step": '{"step": true}',
    "in one names no step": "{}",
    "names no step.": '{"step": -1}',
    "is not readable JSON": "{",
    "must be a JSON object": "[3]",
    "nested too deep": "[" * 100_000,
    "not readable": '{"step": ' + "9" * 5000 + "}",
}


@pytest.mark.parametrize(("words", "text"), BAD_STATES.items(), ids=BAD_STATES.keys())
def test_a_damaged_state_is_told_in_a_sentence(words: str, text: str, tmp_path: Path) -> None:
    model = saved_state(tmp_path / "one", TrainConfig())
    (tmp_path / "one" / "state.json").write_text(text)
    with pytest.raises(CheckpointError, match=words):
        load_state(tmp_path / "one", model, TrainConfig())


def test_a_missing_or_foreign_state_is_told_in_a_sentence(tmp_path: Path) -> None:
    config = TrainConfig()
    model = saved_state(tmp_path / "one", config)
    with pytest.raises(CheckpointError, match="of another model or optimizer"):
        load_state(tmp_path / "one", model, config.replace(optimizer="sgd"))
    with pytest.raises(CheckpointError, match="of another model or optimizer"):
        load_state(tmp_path / "one", Transformer(SMALL.replace(d_ff=24)), config)
    file = tmp_path / "one" / "state.safetensors"
    os.truncate(file, file.stat().st_size // 2)
    with pytest.raises(CheckpointError, match="is damaged"):
        load_state(tmp_path / "one", model, config)
    file.unlink()
    with pytest.raises(CheckpointError, match=r"one has no readable state\.safetensors"):
        load_state(tmp_path / "one", model, config)
    save_checkpoint(tmp_path / "two", model)
    with pytest.raises(CheckpointError, match=r"two has no readable state\.json"):
        load_state(tmp_path / "two", model, config)


def test_a_state_that_forgot_a_parameter_is_refused(tmp_path: Path) -> None:
    config = TrainConfig()
    model = saved_state(tmp_path / "one", config)
    file = tmp_path / "one" / "state.safetensors"
    memory = load_file(file)
    save_file({name: memory[name] for name in sorted(memory)[3:]}, file)
    with pytest.raises(CheckpointError, match="of another model or optimizer"):
        load_state(tmp_path / "one", model, config)


def test_nothing_saved_is_pickled(tmp_path: Path) -> None:
    saved_state(tmp_path / "one", TrainConfig())
    names = {path.name for path in (tmp_path / "one").iterdir()}
    assert names == (FOUR_FILES - {"tokenizer.json"}) | {"state.json", "state.safetensors"}
    assert json.loads((tmp_path / "one" / "state.json").read_text()) == {"step": 1}


def test_opening_loads_no_compiler(tmp_path: Path) -> None:
    """Arithmetic in a constructor would load torch's compiler on the meta device: 0.9 s."""
    config = SMALL.replace(n_kv_heads=1, gated=True, norm="rms", tie_embeddings=True)
    for positions in ("sinusoidal", "learned", "rotary", "alibi", "none"):
        save_checkpoint(tmp_path / positions, Transformer(config.replace(positions=positions)))
    program = (
        "import sys, pathlib\n"
        "from models import load_checkpoint\n"
        f"for folder in pathlib.Path({str(tmp_path)!r}).iterdir(): load_checkpoint(folder)\n"
        "sys.exit('torch._dynamo' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT).returncode == 0
