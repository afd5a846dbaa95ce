"""The weights of a folder: what its headers say, checked against the library and against lies."""

import json
import os
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from models.loading.safe_files import CheckpointError
from models.loading.stored_weights import QUANTIZED, READABLE
from models.loading.weight_files import STATE_WEIGHTS, WEIGHTS, open_file, open_weights
from tests.models.loading.hostile import packed, shard, sharded
from tests.models.loading.mutations import ANY_JSON
from tests.models.loading.opening import check_sentence

TYPES = READABLE | {
    "I64": torch.int64,
    "I8": torch.int8,
    "U32": torch.uint32,
    "BOOL": torch.bool,
    "C64": torch.complex64,
    "F8_E4M3": torch.float8_e4m3fn,
}
COUNTS = st.lists(st.integers(-2, 40) | st.integers(), max_size=3) | ANY_JSON
ENTRIES = st.fixed_dictionaries(
    {"dtype": st.sampled_from(sorted(TYPES)) | ANY_JSON, "shape": COUNTS, "data_offsets": COUNTS}
)
NAMES = st.sampled_from("ab") | st.text()
HEADERS = st.dictionaries(NAMES, ENTRIES | ANY_JSON, max_size=4) | ANY_JSON


def test_one_file_and_many_hold_the_same_names_shapes_bytes_and_numbers(gpt2: Path) -> None:
    theirs = load_file(gpt2 / WEIGHTS)
    for files in ({WEIGHTS}, {shard(1), shard(2)}):
        weights = open_weights(str(gpt2))
        assert weights.names == tuple(sorted(theirs))
        assert weights.bytes == sum(tensor.nbytes for tensor in theirs.values())
        assert {weights.file(name) for name in weights.names} == files
        with weights.open() as read:
            for name, tensor in theirs.items():
                assert (weights.shape(name), weights.dtype(name)) == (tuple(tensor.shape), "F32")
                assert torch.equal(read(name), tensor)
        if files == {WEIGHTS}:
            sharded(lambda _, places: places.popitem())(gpt2)  # whoever reads a file reads it all


def test_a_fraction_comes_as_it_is_stored_and_no_other_number_is_a_weight(tmp_path: Path) -> None:
    for dtype, kind in TYPES.items():
        values = torch.linspace(0, 1, 12).view(3, 4).to(kind)
        save_file({"a": values, "nothing": torch.zeros(0, 3)}, tmp_path / WEIGHTS)
        weights = open_weights(tmp_path)
        assert weights.dtype("a") == dtype
        with weights.open() as read:
            assert read("nothing").shape == (0, 3)
            if dtype in READABLE:
                assert torch.equal(read("a"), values)
                assert read("a").dtype == kind
                continue
            quantized = "is quantized" if dtype.startswith(QUANTIZED) else "is of type"
            with pytest.raises(CheckpointError, match=quantized):
                read("a")


def test_one_bad_number_is_found(tmp_path: Path) -> None:
    for dtype in READABLE.values():
        for number, place in (("nan", 0), ("inf", 500), ("-inf", -1)):
            values = torch.randn(1001).to(dtype)
            values[place] = float(number)
            save_file({"good": torch.randn(5), "bad": values}, tmp_path / WEIGHTS)
            with open_weights(tmp_path).open() as read:
                read("good")
                with pytest.raises(CheckpointError, match=r"^bad in .* holds NaN, infinite"):
                    read("bad")


def test_the_memory_of_a_training_is_no_model(tmp_path: Path) -> None:
    save_file({"a/step": torch.ones(())}, tmp_path / STATE_WEIGHTS)
    with pytest.raises(CheckpointError, match=f"has no {WEIGHTS}"):
        open_weights(tmp_path)
    assert open_file(tmp_path, STATE_WEIGHTS).names == ("a/step",)


def test_a_file_that_changed_after_its_header_was_read(tmp_path: Path) -> None:
    save_file({"a": torch.ones(2, 3)}, tmp_path / WEIGHTS)
    weights = open_weights(tmp_path)
    complex_ones = torch.ones(2, 3, dtype=torch.complex64)
    for changed in ({"a": torch.ones(3, 2)}, {"a": complex_ones}, {"b": torch.ones(3, 2)}):
        save_file(changed, tmp_path / WEIGHTS)
        with weights.open() as read, pytest.raises(CheckpointError, match="changed while it was"):
            read("a")
    (tmp_path / WEIGHTS).unlink()
    with weights.open() as read, pytest.raises(CheckpointError, match="has no readable"):
        read("a")


def test_a_file_that_is_cut_while_its_numbers_are_read_is_said(tmp_path: Path) -> None:
    """Each read asks the file again: what is cut short kills nobody, since nothing is mapped."""
    save_file({"a": torch.ones(1 << 16), "b": torch.ones(1 << 16)}, tmp_path / WEIGHTS)
    with open_weights(tmp_path).open() as read:
        kept = read("a")
        os.truncate(tmp_path / WEIGHTS, 4096)
        assert kept.eq(1).all()
        with pytest.raises(CheckpointError, match="changed while it was read; open it again"):
            read("b")


@settings(
    max_examples=max(100, settings().max_examples),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.binary(max_size=40) | HEADERS.map(lambda header: json.dumps(header).encode()))
def test_random_headers(tmp_path: Path, header: bytes) -> None:
    """Every tensor of such a file is read, or a fit sentence says why not."""
    for content in (header, packed(header, bytes(len(header) % 40))):
        (tmp_path / WEIGHTS).write_bytes(content)
        try:
            weights = open_weights(tmp_path)
            with weights.open() as read:
                for name in weights.names:
                    read(name)
        except CheckpointError as error:
            check_sentence(str(error), tmp_path)
