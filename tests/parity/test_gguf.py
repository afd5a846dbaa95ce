"""A GGUF file opens as the published folder of the same model: config, weights, and answers."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from models.families.effective_fields import effective_fields
from models.loading.checkpoint import Checkpoint, load_checkpoint
from models.loading.gguf_conversion import convert_gguf
from tests.parity.cases import CASES
from tests.parity.families import (
    LENGTH,
    Pair,
    assert_close,
    build_reference,
    inputs_of,
    open_pair,
    our_trace,
    reference_values,
)
from tests.parity.llama_cpp import write_gguf

OPENS = ("llama", "llama, biases", "llama, tied, wide heads")


def same_weights(one: Checkpoint, other: Checkpoint) -> None:
    theirs = dict(other.model.named_parameters())
    for name, ours in one.model.named_parameters():
        assert torch.equal(ours, theirs.pop(name)), name
    assert theirs == {}


@pytest.mark.parametrize("name", OPENS)
def test_opens_as_its_published_folder(name: str, tmp_path: Path) -> None:
    pair = open_pair(CASES[name], tmp_path / "folder")
    write_gguf(pair.reference, tmp_path / "model.gguf")
    found = load_checkpoint(tmp_path / "model.gguf")
    assert (found.family, found.unused, found.unfollowed) == (pair.ours.family, (), ())
    assert effective_fields(found.config) == effective_fields(pair.ours.config)
    same_weights(found, pair.ours)
    read = Pair(pair.case, pair.reference, found)
    inputs = inputs_of(read, LENGTH)
    answers = our_trace(read, inputs).output
    assert_close(answers, reference_values(read, inputs)["logits"], name)


def test_becomes_a_published_folder(tmp_path: Path) -> None:
    write_gguf(build_reference(CASES["llama"]), tmp_path / "model.gguf")
    for _ in range(2):  # the second takes the place of the first
        assert convert_gguf(tmp_path / "model.gguf", tmp_path / "folder") == "llama"
    same_weights(load_checkpoint(tmp_path / "model.gguf"), load_checkpoint(tmp_path / "folder"))
