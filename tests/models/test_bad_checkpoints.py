"""A folder that is no checkpoint is refused in one sentence, before it costs anything."""

from __future__ import annotations

import json
import os
import pickle
import resource
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from models import Transformer, load_checkpoint, save_checkpoint
from models.checkpoint import CheckpointError
from tests.models.building import SMALL, shaken
from tests.models.opening import Opener, not_refused_as_told

WEIGHTS, CONFIG, RUN, TOKENIZER = "model.safetensors", "config.json", "run.json", "tokenizer.json"
Damage = Callable[[Path], object]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_checkpoint(tmp_path / "one", shaken(SMALL, torch.float32), tokenizer="{}", run={"a": 1})
    return tmp_path / "one"


def refusal(folder: Path) -> str:
    with pytest.raises(CheckpointError) as refused:
        load_checkpoint(folder)
    sentence = str(refused.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert str(folder.parent) not in sentence, "a path of the server is nobody's business"
    return sentence


def text(name: str, content: str) -> Damage:
    return lambda folder: (folder / name).write_text(content)


def data(name: str, content: bytes) -> Damage:
    return lambda folder: (folder / name).write_bytes(content)


def config(**changes: object) -> Damage:
    return text(CONFIG, json.dumps(SMALL.to_dict() | changes))


def weights(change: Callable[[dict[str, torch.Tensor]], object]) -> Damage:
    def damage(folder: Path) -> None:
        values = load_file(folder / WEIGHTS)
        change(values)
        save_file(values, folder / WEIGHTS)

    return damage


def truncated(share: float) -> Damage:
    return lambda folder: os.truncate(
        folder / WEIGHTS, int((folder / WEIGHTS).stat().st_size * share)
    )


def pickled(folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({}))


def folder_for_a_file(folder: Path) -> None:
    (folder / CONFIG).unlink()
    (folder / CONFIG).mkdir()


BIAS = "head.bias"
HUGE = {"d_model": 10**6, "vocab_size": 10**6, "d_ff": 10**6, "n_heads": 1, "positions": "none"}
DAMAGES: dict[str, tuple[Damage, str]] = {
    "no config": (lambda f: (f / CONFIG).unlink(), "one has no readable config.json."),
    "config is a folder": (folder_for_a_file, "one has no readable config.json."),
    "config is cut": (text(CONFIG, '{"kind": "dec'), "config.json in one is not readable JSON."),
    "config is no text": (data(CONFIG, b"\xff\xfe"), "config.json in one is not text."),
    "config is deep": (text(CONFIG, "[" * 200_000), "config.json in one is nested too deep."),
    "config is large": (text(CONFIG, " " * (2 << 20)), "too large"),
    "config is a list": (text(CONFIG, "[]"), "must be a JSON object"),
    "config of another": (config(architectures=["GPT2LMHeadModel"]), "unknown keys: 'archi"),
    "config is no model": (config(n_heads=5), "d_model 12 is not divisible by n_heads 5."),
    "run is cut": (text(RUN, "{"), "run.json in one is not readable JSON."),
    "run is deep": (text(RUN, "[" * 200_000), "run.json in one is nested too deep."),
    "run is a list": (text(RUN, "[1]"), "run.json in one must be a JSON object."),
    "run holds a huge number": (text(RUN, "[" + "9" * 5000 + "]"), "not readable JSON"),
    "tokenizer is no text": (data(TOKENIZER, b"\xff"), "tokenizer.json in one is not text."),
    "no weights": (lambda f: (f / WEIGHTS).unlink(), "one has no model.safetensors."),
    "pickled weights": (pickled, "one holds pickled weights, which can run code"),
    "a pickle by another name": (data(WEIGHTS, pickle.dumps({})), "is pickled, which can run"),
    "empty weights": (data(WEIGHTS, b""), "is empty; fetch or save it again."),
    "header too long": (data(WEIGHTS, struct.pack("<Q", 1 << 60) + b"{}"), "damaged"),
    "half the weights": (truncated(0.5), "is damaged or cut short."),
    "almost all weights": (truncated(0.999), "is damaged or cut short."),
    "a weight is missing": (
        weights(lambda values: values.pop(BIAS)),
        "one lacks head.bias, which its config asks for.",
    ),
    "a weight is too short": (
        weights(lambda values: values.update({BIAS: torch.zeros(12)})),
        "head.bias in one has the shape (12,), which is not what the config says.",
    ),
    "a weight is turned": (
        weights(lambda values: values.update({"head.weight": torch.zeros(12, 13)})),
        "head.weight in one has the shape (12, 13)",
    ),
    "config says more layers": (config(n_layers=3), "lacks decoder.blocks.2."),
    "config says wider": (config(d_ff=21), "has the shape (20, 12)"),
    "config says huge": (config(**HUGE), "is not what the config says."),
    "config says deep": (config(n_layers=200), "asks for 200 layers, but there are only 37"),
}


def test_a_damaged_folder_is_refused_in_a_sentence(ours: Path, opener: Opener) -> None:
    assert not_refused_as_told(opener, ours, DAMAGES) == []


def test_where_there_is_no_folder(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none") == "There is no checkpoint folder none."
    (tmp_path / "file").write_text("")
    assert refusal(tmp_path / "file") == "There is no checkpoint folder file."
    (tmp_path / "empty").mkdir()
    assert refusal(tmp_path / "empty") == "empty has no readable config.json."


def test_what_is_too_much_is_reported(folder: Path) -> None:
    weights(lambda values: values.update(zeta=torch.zeros(3), alpha=torch.zeros(1)))(folder)
    assert load_checkpoint(folder).unused == ("alpha", "zeta")


def test_weights_of_another_precision_are_read(folder: Path, subtests: pytest.Subtests) -> None:
    for dtype in [torch.float16, torch.bfloat16, torch.float64]:
        with subtests.test(dtype=dtype):
            before = load_checkpoint(folder).model
            values = {name: value.to(dtype) for name, value in load_file(folder / WEIGHTS).items()}
            save_file(values, folder / WEIGHTS)
            after = load_checkpoint(folder).model
            for mine, theirs in zip(after.parameters(), before.parameters(), strict=True):
                assert mine.dtype == torch.float32
                torch.testing.assert_close(mine, theirs, rtol=0.01, atol=0.01)


def test_a_huge_config_costs_no_memory(folder: Path) -> None:
    config(**HUGE)(folder)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refusal(folder)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.floats(0, 0.05), st.integers(0, 255))
def test_a_flipped_byte_near_the_start_is_no_accident(
    folder: Path, place: float, byte: int
) -> None:
    whole = (folder / WEIGHTS).read_bytes()
    damaged = bytearray(whole)
    damaged[int(place * len(whole))] = byte
    (folder / WEIGHTS).write_bytes(bytes(damaged))
    with suppress(CheckpointError):
        load_checkpoint(folder)
    (folder / WEIGHTS).write_bytes(whole)


def test_a_link_to_a_model_is_followed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    assert isinstance(load_checkpoint(tmp_path / "link").model, Transformer)
