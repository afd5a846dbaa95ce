"""The shelf with folders of others on it: their order, their names, their faults."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from explorer import library, places, shelves
from explorer.library import Entry, LibraryError
from tests import zoo
from tests.shelf import NAMES, shelf


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the reference library saved, once."""
    return zoo.zoo(tmp_path_factory.mktemp("zoo"))


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same for one test, which may change it; the app was started for it."""
    shelf(tmp_path / "shipped")
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path / "shipped"))
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("EXPLORER_MODELS", str(tmp_path / "zoo"))
    return Path(shutil.copytree(made, tmp_path / "zoo"))


def found(*brought: Path) -> dict[str, Entry]:
    return {entry.name: entry for entry in library.entries(brought=brought)}


def test_named_folders_stand_first_and_open(folder: Path) -> None:
    entries = found()
    assert list(entries)[:4] == ["bert", "gpt2", "t5", "torn"]
    assert sorted(list(entries)[4:]) == sorted(NAMES)
    assert {entries[name].origin for name in ("bert", "torn")} == {"named"}
    for name in ("bert", "gpt2", "t5"):
        entry = entries[name]
        assert (entry.fault, entry.family) == (None, name)
        opened = library.open_entry(entry)
        assert opened.model.n_parameters == entry.parameters
        assert library.open_model(name) is opened
        weights = folder / name / "model.safetensors"
        assert entry.bytes == weights.stat().st_size


def test_the_first_named_one_that_opens_is_shown_first(folder: Path) -> None:
    shutil.rmtree(folder / "bert")
    (folder / "gpt2" / "config.json").write_text("{")
    opening = {name: entry for name, entry in found().items() if entry.config}
    assert shelves.first(opening).name == "t5"


def test_a_damaged_folder_says_why_beside_good_ones(folder: Path) -> None:
    entry = found()["torn"]
    assert entry.config is None
    assert entry.fault
    assert entry.fault.endswith(".")
    with pytest.raises(LibraryError, match=r"^The model torn cannot be opened: .*\.$"):
        library.open_entry(entry)
    assert library.open_model("gpt2")


def write(name: str, text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(text)


def a_terabyte(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"n_embd": 3 * 10**6}))


def a_folder_for_a_file(folder: Path) -> None:
    (folder / "config.json").unlink()
    (folder / "config.json" / "x").mkdir(parents=True)


def a_pipe(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    os.mkfifo(folder / "model.safetensors")


HARM: dict[str, Callable[[Path], object]] = {
    "no weights": lambda f: (f / "model.safetensors").rename(f / "weights"),
    "a pickle": lambda f: (f / "model.safetensors").rename(f / "pytorch_model.bin"),
    "a pointer": write("model.safetensors", "version https://git-lfs\n"),
    "a config that is a list": write("config.json", "[]"),
    "a terabyte": a_terabyte,
    "an unknown family": write("config.json", '{"model_type": "banana"}'),
    "a config that is a folder": a_folder_for_a_file,
    "weights that are a pipe": a_pipe,
}


@pytest.mark.parametrize("harm", HARM)
@pytest.mark.timeout(30)
def test_harm_is_one_sentence_and_the_rest_stays(folder: Path, harm: str) -> None:
    HARM[harm](folder / "gpt2")
    entries = found()
    assert library.open_entry(entries["t5"])
    assert library.open_entry(entries["bert"])
    looked = library.look_at(folder / "gpt2")
    assert looked.fault
    assert looked.fault.endswith(".")
    assert "\n" not in looked.fault
    assert ("gpt2" in entries) == (folder / "gpt2" / "config.json").is_file()


def test_a_mended_folder_is_looked_at_again(folder: Path, made: Path) -> None:
    assert found()["torn"].fault
    shutil.copy(made / "gpt2" / "model.safetensors", folder / "torn")
    assert found()["torn"].fault is None
    assert library.open_model("torn").family == "gpt2"


def test_names_that_are_taken_get_a_number(folder: Path, tmp_path: Path) -> None:
    for place in ("x", "y"):
        zoo.gpt2(tmp_path / place / "gpt2", seed=1)
    brought = (tmp_path / "x" / "gpt2", tmp_path / "y" / "gpt2")
    entries = found(*brought)
    folders = {name: entries[name].folder for name in ("gpt2", "gpt2 (2)", "gpt2 (3)")}
    assert list(folders.values()) == [folder / "gpt2", *brought]
    assert [entry.origin for entry in entries.values()][:3] == ["brought", "brought", "named"]
    assert len(entries) == 6 + len(NAMES)
    for name, path in folders.items():
        assert library.open_entry(entries[name]).name == name
        assert entries[name].folder == path


def test_a_folder_stands_on_the_shelf_once(folder: Path) -> None:
    entries = found(folder / "gpt2")
    assert entries["gpt2"].origin == "named"
    assert [entry.folder for entry in entries.values()].count(folder / "gpt2") == 1


def test_a_model_in_many_files_is_one(folder: Path) -> None:
    one = library.open_model("gpt2").model
    shutil.rmtree(folder / "gpt2")
    zoo.gpt2(folder / "gpt2", shards=True)
    shards = sorted((folder / "gpt2").glob("*.safetensors"))
    assert len(shards) > 1
    entry = found()["gpt2"]
    assert entry.bytes == sum(shard.stat().st_size for shard in shards)
    many = library.open_entry(entry).model
    for (name, ours), (same, theirs) in zip(
        one.named_parameters(), many.named_parameters(), strict=True
    ):
        assert name == same
        assert ours.equal(theirs)
    shards[-1].unlink()
    with pytest.raises(LibraryError, match=r"^The model gpt2 cannot be opened: .*\.$"):
        library.open_entry(entry)
    assert found()["gpt2"].fault
    zoo.gpt2(folder / "made", shards=True)
    shutil.copy(folder / "made" / shards[-1].name, folder / "gpt2")
    assert found()["gpt2"].fault is None


def test_a_changed_shard_is_read_again(folder: Path) -> None:
    shutil.rmtree(folder / "gpt2")
    zoo.gpt2(folder / "gpt2", shards=True)
    before = library.open_model("gpt2")
    shutil.rmtree(folder / "gpt2")
    zoo.gpt2(folder / "gpt2", seed=1, shards=True)
    after = library.open_model("gpt2").model
    old = dict(before.model.named_parameters())
    assert not any(old[n].equal(p) for n, p in after.named_parameters() if p.dim() == 2)


def test_what_another_reader_uploaded_is_on_no_shelf(folder: Path, made: Path) -> None:
    files = {file.name: file for file in (made / "gpt2").iterdir()}
    streams = {name: file.open("rb") for name, file in files.items()}
    sizes = {name: file.stat().st_size for name, file in files.items()}
    kept = places.keep_upload(streams, sizes, library.uploads_root())
    for stream in streams.values():
        stream.close()
    assert kept.name not in found()
    assert library.uploaded(kept.name) == kept
    assert found(kept)[kept.name].fault is None
    assert library.open_entry(library.look_at(kept)).family == "gpt2"
    assert library.uploaded("../" + kept.name) is None


def test_a_folder_that_goes_is_gone(folder: Path) -> None:
    entry = found()["gpt2"]
    shutil.rmtree(folder / "gpt2")
    assert "gpt2" not in found()
    with pytest.raises(LibraryError, match=r"\.$"):
        library.open_entry(entry)


def test_a_stranger_on_the_shipped_shelf_or_in_a_run_is_refused(
    folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(folder / "gpt2", tmp_path / "runs" / "mine" / "checkpoint")
    entry = found()["mine"]
    assert entry.fault is None or entry.fault.endswith(".")
    if entry.config is not None:
        assert library.open_entry(entry)
