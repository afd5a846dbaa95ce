"""The weights of a folder: what its headers say, checked against the library and against lies."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save, save_file
from torch import Tensor

from models.files import CheckpointError
from models.headers import BITS, check_header
from models.weights import STATE_WEIGHTS, WEIGHTS, open_file, open_weights
from tests.grids import grid
from tests.models.hostile import INDEX, packed, shard, sharded, unpacked, write_gpt2
from tests.models.opening import check_sentence

TYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
    "C64": torch.complex64,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
    "F8_E4M3FNUZ": torch.float8_e4m3fnuz,
    "F8_E5M2FNUZ": torch.float8_e5m2fnuz,
    "U16": torch.uint16,
    "U32": torch.uint32,
    "U64": torch.uint64,
}
SHAPES = st.lists(st.integers(0, 4), max_size=4).map(tuple)
TENSORS = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12).filter("__metadata__".__ne__),
    st.tuples(SHAPES, st.sampled_from(sorted(TYPES))),
    max_size=6,
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(sorted(BITS)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
COUNTS = st.integers(-2, 40) | st.integers()
ENTRIES = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(sorted(BITS)) | JSON,
        "shape": st.lists(COUNTS, max_size=3) | JSON,
        "data_offsets": st.lists(COUNTS, min_size=2, max_size=2) | JSON,
    }
)
HEADERS = st.dictionaries(st.sampled_from("ab") | st.text(), ENTRIES | JSON, max_size=4) | JSON


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weights") / "one"
    write_gpt2(folder)
    return folder


def opened(content: bytes) -> dict[str, Tensor]:
    """What our reader makes of a file; every tensor that may be a weight is read."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "one"
        folder.mkdir()
        (folder / WEIGHTS).write_bytes(content)
        weights = open_weights(folder)
        with weights.reading() as read:
            return {name: read(name).clone() for name in weights.names}


def sentence_or_none(content: bytes) -> str | None:
    """Anything but a CheckpointError with a fit sentence fails the test."""
    try:
        opened(content)
    except CheckpointError as error:
        check_sentence(str(error), Path("/nowhere/one"))
        return str(error)
    return None


@given(TENSORS, st.dictionaries(st.sampled_from("xyz"), st.text("ab"), max_size=2))
def test_what_the_library_writes_is_what_we_read(
    tensors: dict[str, tuple[tuple[int, ...], str]], notes: dict[str, str]
) -> None:
    values = {name: torch.zeros(shape).to(TYPES[dtype]) for name, (shape, dtype) in tensors.items()}
    header, numbers = unpacked(save(values, notes or None))
    stored = check_header(header, len(numbers), WEIGHTS, "it")
    assert {name: (one.shape, one.dtype) for name, one in stored.items()} == tensors
    assert sum(one.end - one.begin for one in stored.values()) == len(numbers)


def test_names_shapes_types_and_bytes(folder: Path) -> None:
    theirs = load_file(folder / WEIGHTS)
    weights = open_weights(str(folder))
    assert weights.names == tuple(sorted(theirs))
    assert {name: weights.shape(name) for name in weights.names} == {
        name: tuple(tensor.shape) for name, tensor in theirs.items()
    }
    assert {weights.dtype(name) for name in weights.names} == {"F32"}
    assert {weights.file(name) for name in weights.names} == {WEIGHTS}
    assert weights.bytes == sum(tensor.nbytes for tensor in theirs.values())


def test_shards_are_one(folder: Path, tmp_path: Path) -> None:
    whole = open_weights(folder)
    parts = tmp_path / "one"
    write_gpt2(parts)
    sharded()(parts)
    weights = open_weights(parts)
    assert (weights.names, weights.bytes) == (whole.names, whole.bytes)
    assert {weights.file(name) for name in weights.names} == {shard(1), shard(2)}
    with weights.reading() as read, whole.reading() as read_whole:
        for name in weights.names:
            assert torch.equal(read(name), read_whole(name))


def test_what_the_library_shards_is_read(folder: Path, tmp_path: Path) -> None:
    """A tensor that no index names counts too: whoever reads a file reads all of it."""
    save_file({"a": torch.ones(2), "b": torch.zeros(3)}, tmp_path / "x.safetensors")
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": {"a": "x.safetensors"}}))
    assert open_weights(tmp_path).names == ("a", "b")


def test_a_tensor_comes_as_it_is_stored(subtests: pytest.Subtests) -> None:
    for dtype in ["F64", "F32", "F16", "BF16"]:
        with subtests.test(dtype=dtype):
            values = torch.randn(3, 4).to(TYPES[dtype])
            assert torch.equal(opened(save({"a": values}))["a"], values)
            assert opened(save({"a": values}))["a"].dtype == TYPES[dtype]


@pytest.mark.parametrize("dtype", sorted(set(TYPES) - {"F64", "F32", "F16", "BF16"}))
def test_a_weight_is_a_fraction(dtype: str, tmp_path: Path) -> None:
    save_file({"a": torch.zeros(2).to(TYPES[dtype])}, tmp_path / WEIGHTS)
    weights = open_weights(tmp_path)
    assert weights.dtype("a") == dtype
    quantized = "is quantized" if BITS[dtype] == 8 and dtype != "BOOL" else "is of type"
    with weights.reading() as read, pytest.raises(CheckpointError, match=quantized):
        read("a")


@grid(
    "dtype, number, place",
    ["F64", "F32", "F16", "BF16"],
    [float("nan"), float("inf"), float("-inf")],
    [0, 500, -1],
)
def test_one_bad_number_is_found(dtype: str, number: float, place: int, tmp_path: Path) -> None:
    values = torch.randn(1001).to(TYPES[dtype])
    values[place] = number
    save_file({"good": torch.randn(5), "bad": values}, tmp_path / WEIGHTS)
    with open_weights(tmp_path).reading() as read:
        read("good")
        with pytest.raises(CheckpointError, match=r"^bad in .* holds NaN, infinite"):
            read("bad")


def test_a_tensor_of_nothing_is_read() -> None:
    assert opened(save({"a": torch.zeros(0, 3)}))["a"].shape == (0, 3)


def test_the_memory_of_a_training_is_no_model(tmp_path: Path) -> None:
    save_file({"a/step": torch.ones(())}, tmp_path / STATE_WEIGHTS)
    with pytest.raises(CheckpointError, match=f"has no {WEIGHTS}"):
        open_weights(tmp_path)
    assert open_file(tmp_path, STATE_WEIGHTS).names == ("a/step",)


def test_a_file_that_changed_after_its_header_was_read(tmp_path: Path) -> None:
    save_file({"a": torch.ones(2, 3)}, tmp_path / WEIGHTS)
    weights = open_weights(tmp_path)
    save_file({"a": torch.ones(3, 2)}, tmp_path / WEIGHTS)
    with weights.reading() as read, pytest.raises(CheckpointError, match="changed while it was"):
        read("a")
    save_file({"a": torch.ones(2, 3, dtype=torch.complex64)}, tmp_path / WEIGHTS)
    with weights.reading() as read, pytest.raises(CheckpointError, match="changed while it was"):
        read("a")
    save_file({"b": torch.ones(3, 2)}, tmp_path / WEIGHTS)
    with weights.reading() as read, pytest.raises(CheckpointError, match="damaged or cut short"):
        read("a")
    os.truncate(tmp_path / WEIGHTS, 70)
    with weights.reading() as read, pytest.raises(CheckpointError, match="damaged or cut short"):
        read("a")
    (tmp_path / WEIGHTS).unlink()
    with weights.reading() as read, pytest.raises(CheckpointError, match="has no readable"):
        read("a")


def test_headers_cost_what_headers_take(tmp_path: Path) -> None:
    """A file with a hole of a terabyte is opened, as far as its header goes, at once."""
    size = 1 << 40
    entry = {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}
    content = packed(json.dumps({"a": entry}).encode())
    (tmp_path / WEIGHTS).write_bytes(content)
    try:
        os.truncate(tmp_path / WEIGHTS, len(content) + size)
    except OSError:
        pytest.skip("this disk has no files of a terabyte")
    assert open_file(tmp_path, WEIGHTS).bytes == size


@given(st.binary(max_size=80) | st.binary(max_size=40).map(packed))
def test_random_bytes_are_no_file(content: bytes) -> None:
    sentence_or_none(content)


@settings(max_examples=400)
@given(HEADERS, st.integers(0, 40))
def test_random_headers(header: Any, size: int) -> None:
    sentence_or_none(packed(json.dumps(header).encode(), bytes(size)))


@settings(max_examples=400)
@given(st.data(), st.integers(1, 4))
def test_a_good_file_with_some_bytes_changed(folder: Path, data: st.DataObject, count: int) -> None:
    """Most of these bytes are the header's; the numbers may change without a lie."""
    content = bytearray((folder / WEIGHTS).read_bytes())
    header = 8 + int.from_bytes(content[:8], "little")
    for _ in range(count):
        content[data.draw(st.integers(0, header + 20))] = data.draw(st.integers(0, 255))
    sentence_or_none(bytes(content))


@given(st.floats(0, 1))
def test_a_good_file_cut_anywhere(folder: Path, share: float) -> None:
    content = (folder / WEIGHTS).read_bytes()
    sentence = sentence_or_none(content[: min(int(share * len(content)), len(content) - 1)])
    assert sentence
    assert "damaged or cut short" in sentence or "is empty" in sentence
