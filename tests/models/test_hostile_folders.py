"""A hostile folder does no more than print its sentence: its files, links, index and pickles."""

from __future__ import annotations

import json
import os
import pickle
import zipfile
from pathlib import Path

import pytest

from models import load_checkpoint
from tests.models.hostile import (
    CONFIG,
    INDEX,
    PAGE,
    POINTER,
    UGLY,
    WEIGHTS,
    Cases,
    all_of,
    data,
    folder_for,
    link_for,
    mapped,
    moved_out,
    packed,
    pipe_for,
    renamed,
    shard,
    sharded,
    text,
    without,
)
from tests.models.opening import Opener, all_refused, refused

FILES: Cases = {
    "nothing": (without(CONFIG, WEIGHTS), "one has no readable config.json."),
    "no config": (without(CONFIG), "one has no readable config.json."),
    "config is a folder": (folder_for(CONFIG), "one has no readable config.json."),
    "config is a pipe": (pipe_for(CONFIG), "one has no readable config.json."),
    "config is a link to itself": (link_for(CONFIG, CONFIG), "one has no readable config.json."),
    "config is a link to nothing": (link_for(CONFIG, "none"), "one has no readable config.json."),
    "config is a device": (link_for(CONFIG, "/dev/zero"), "is a link out of the folder"),
    "config lies elsewhere": (moved_out(CONFIG), "config.json in one is a link out of the folder"),
    "run is a link out": (
        lambda folder: (folder / "run.json").symlink_to("/etc/hostname"),
        "run.json in one is a link out of the folder",
    ),
    "tokenizer is a folder": (
        lambda folder: (folder / "tokenizer.json").mkdir(),
        "one has no readable tokenizer.json.",
    ),
    "tokenizer is a pipe": (
        lambda folder: os.mkfifo(folder / "tokenizer.json"),
        "one has no readable tokenizer.json.",
    ),
    "weights are a folder": (folder_for(WEIGHTS), "one has no readable model.safetensors."),
    "weights are a pipe": (pipe_for(WEIGHTS), "one has no readable model.safetensors."),
    "weights are a device": (link_for(WEIGHTS, "/dev/zero"), "is a link out of the folder"),
    "weights lie elsewhere": (moved_out(WEIGHTS), "is a link out of the folder"),
    "weights are a link to nothing": (link_for(WEIGHTS, "none"), "no readable model.safetensors"),
}

NORM = "transformer.ln_f.weight"


def copied(source: Path, target: Path) -> None:
    target.write_bytes(source.read_bytes())


def with_many_files(folder: Path, places: dict[str, str]) -> None:
    """As many as may be, each with a header and nothing else."""
    for i in range(990):
        (folder / f"{i}.safetensors").write_bytes(packed(b"{}"))
        places[f"{i}"] = f"{i}.safetensors"


def with_long_headers(folder: Path, places: dict[str, str]) -> None:
    """Each as long as it may be, had it the folder for itself."""
    for i in range(20):
        (folder / f"{i}.safetensors").write_bytes(packed(b"{}" + b" " * (4_000_000)))
        places[f"{i}"] = f"{i}.safetensors"


def with_many_tensors(folder: Path, places: dict[str, str]) -> None:
    for i in range(3):
        entry = {"dtype": "F4", "shape": [0], "data_offsets": [0, 0]}
        header = json.dumps({f"{i}-{j}": entry for j in range(5_000)})
        (folder / f"{i}.safetensors").write_bytes(packed(header.encode()))
        places[f"{i}-0"] = f"{i}.safetensors"


def zipped(folder: Path) -> None:
    with zipfile.ZipFile(folder / WEIGHTS, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({}))


def crowded(folder: Path) -> None:
    for i in range(2_000):
        (folder / f"{i}.txt").touch()


INDEXED: Cases = {
    "a missing file": (
        all_of(sharded(), without(shard(2))),
        "lacks 1 of the 2 files of its weights, first model-00002-of-00002.safetensors.",
    ),
    "all files missing": (all_of(sharded(), without(shard(1), shard(2))), "lacks 2 of the 2 files"),
    "a file that is a pointer": (all_of(sharded(), text(shard(2), POINTER)), "git lfs pull"),
    "a file that is empty": (all_of(sharded(), text(shard(2), "")), "is empty"),
    "a file that is a pipe": (all_of(sharded(), pipe_for(shard(1))), "has no readable model-00001"),
    "a file that is elsewhere": (all_of(sharded(), moved_out(shard(1))), "is a link out"),
    "a file that is the index": (mapped(NORM, INDEX), "which is no safetensors file"),
    "a file above": (mapped(NORM, "../outside.safetensors"), "names a file outside the folder"),
    "a file from the root": (mapped(NORM, "/etc/passwd"), "names a file outside the folder"),
    "a file by a Windows path": (mapped(NORM, "..\\a.safetensors"), "outside the folder"),
    "a file below": (mapped(NORM, "a/b.safetensors"), "names a file outside the folder"),
    "the folder itself": (mapped(NORM, "."), "names a file outside the folder"),
    "the folder above": (mapped(NORM, ".."), "names a file outside the folder"),
    "a file that is a pickle": (mapped(NORM, "model.bin"), "which is no safetensors file"),
    "a file by a number": (mapped(NORM, 7), "names a file by no file name"),
    "a file by null": (mapped(NORM, None), "names a file by no file name"),
    "a file by a list": (mapped(NORM, [shard(1)]), "names a file by no file name"),
    "a file by an object": (mapped(NORM, {}), "names a file by no file name"),
    "a file of no name": (mapped(NORM, ""), "names a file by no file name"),
    "a file with a zero byte": (mapped(NORM, "a\0.safetensors"), "names a file by no file name"),
    "a file with an ugly name": (mapped(NORM, UGLY), "names a file by no file name"),
    "a tensor in the wrong file": (mapped(NORM, shard(1)), "which the index puts there"),
    "a tensor in no file": (mapped("zeta", shard(1)), "lacks zeta, which the index puts there"),
    "an ugly tensor in no file": (mapped(UGLY, shard(1)), "which the index puts there"),
    "a tensor in two files": (
        sharded(lambda folder, _: copied(folder / shard(1), folder / shard(2))),
        "so which one counts is not known",
    ),
    "no map": (all_of(sharded(), text(INDEX, "{}")), "has no weight_map"),
    "an empty map": (all_of(sharded(), text(INDEX, '{"weight_map": {}}')), "has no weight_map"),
    "a map that is a list": (all_of(sharded(), text(INDEX, '{"weight_map": [1]}')), "weight_map"),
    "a list": (all_of(sharded(), text(INDEX, "[]")), "must be a JSON object"),
    "a pointer": (all_of(sharded(), text(INDEX, POINTER)), "git lfs pull"),
    "a name twice": (
        all_of(sharded(), text(INDEX, '{"weight_map": {"a": "b", "a": "c"}}')),
        "names a key twice",
    ),
    "deep": (all_of(sharded(), text(INDEX, '{"weight_map":' * 10_000)), "nested too deep"),
    "too large": (all_of(sharded(), text(INDEX, " " * (5 << 20))), "is too large"),
    "100,000 files": (
        sharded(
            lambda _, places: places.update({f"{i}": f"{i}.safetensors" for i in range(99_999)})
        ),
        "names more than 1,000 files",
    ),
    "1,000 empty files": (sharded(with_many_files), "lacks"),
    "20 files of long headers": (sharded(with_long_headers), "is too long to be one"),
    "3 files of many tensors": (sharded(with_many_tensors), "holds more than 10,000 tensors"),
}

KINDS: Cases = {
    "no weights": (without(WEIGHTS), "one has no model.safetensors."),
    **{
        f"only {name}": (renamed(WEIGHTS, name), words)
        for name, words in {
            "pytorch_model.bin": "pickled weights, which can run code",
            "model.pt": "pickled weights, which can run code",
            "model.pth": "pickled weights, which can run code",
            "model.ckpt": "pickled weights, which can run code",
            "pytorch_model-00001-of-00002.bin": "pickled weights, which can run code",
            "tf_model.h5": "its weights as tf_model.h5, a format that is not read here",
            "flax_model.msgpack": "a format that is not read here",
            "model.onnx": "a format that is not read here",
            "model.Q4_K_M.gguf": "a format that is not read here",
            "adapter_model.safetensors": "holds an adapter, which is no model",
        }.items()
    },
    "two files without an index": (
        all_of(sharded(), without(INDEX)),
        "holds several safetensors files and no model.safetensors.index.json",
    ),
    "a pickle by another name": (data(WEIGHTS, pickle.dumps({"a": 1})), "is pickled"),
    "an old pickle by another name": (data(WEIGHTS, pickle.dumps({}, 2)), "is pickled"),
    "an archive of pickles by another name": (zipped, "is pickled, which can run code"),
    "an image by another name": (data(WEIGHTS, b"\x89PNG\r\n\x1a\n" * 9), "is damaged or cut"),
    "a pointer": (text(WEIGHTS, POINTER), "a git-lfs pointer in place of the file"),
    "a page": (text(WEIGHTS, PAGE), "is a web page in place of the file; fetch it again."),
    "empty": (data(WEIGHTS, b""), "is empty; fetch or save it again."),
    "many other files": (all_of(without(WEIGHTS), crowded), "one has no model.safetensors."),
}

ALL = {
    f"{group}: {name}": case
    for group, cases in {"files": FILES, "index": INDEXED, "weights": KINDS}.items()
    for name, case in cases.items()
}


def test_a_hostile_folder_is_refused(gpt2: Path, opener: Opener) -> None:
    assert all_refused(opener, gpt2, ALL) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read(gpt2: Path, opener: Opener) -> None:
    for name in (WEIGHTS, CONFIG):
        (gpt2 / name).chmod(0)
        assert refused(opener, gpt2) == f"one has no readable {name}."


def test_where_there_is_no_folder(tmp_path: Path, opener: Opener) -> None:
    (tmp_path / "file").write_text("")
    for name in ("none", "a\0b", "x" * 300, "\x1b[2J\n\u202e", "file", os.fsdecode(b"\xff")):
        assert "There is no checkpoint folder " in refused(opener, tmp_path / name), repr(name)


def test_a_folder_with_an_ugly_name(gpt2: Path, opener: Opener) -> None:
    sharded()(gpt2)
    without(shard(1))(gpt2)
    ugly = ["a\n\x1b[2J\u202e" + "x" * 200, "**bold** <b>", os.fsdecode(b"\xff"), "é" * 120]
    for name in (*ugly, chr(0xF0000) * 60):
        gpt2 = gpt2.rename(gpt2.parent / name)
        assert "lacks 1 of the 2 files" in refused(opener, gpt2), repr(name)


def test_what_is_sound_is_read(gpt2: Path) -> None:
    """The same ways to put a folder together, each without the lie."""
    sharded()(gpt2)
    assert load_checkpoint(gpt2).family == "gpt2"
    renamed(shard(1), "other")(gpt2)
    (gpt2 / shard(1)).symlink_to("other")
    assert load_checkpoint(gpt2).unused == ()


def test_the_cache_of_a_hub_is_read(gpt2: Path, tmp_path: Path, opener: Opener) -> None:
    """There every file is a link from `snapshots/<revision>` to `blobs` beside it."""
    snapshot, blobs = (
        tmp_path / "models--a--b" / "snapshots" / "1f",
        tmp_path / "models--a--b" / "blobs",
    )
    for place in (snapshot, blobs):
        place.mkdir(parents=True)
    for i, path in enumerate(sorted(gpt2.iterdir())):
        path.rename(blobs / f"{i}")
        (snapshot / path.name).symlink_to(f"../../blobs/{i}")
    assert load_checkpoint(snapshot).family == "gpt2"
    (snapshot / "run.json").symlink_to("../../refs")
    (snapshot.parent.parent / "refs").write_text("{}")
    assert "run.json in 1f is a link out of the folder" in refused(opener, snapshot)
