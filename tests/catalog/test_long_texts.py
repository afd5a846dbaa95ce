"""Texts that links name by their hash: kept whole, checked when read, bounded and swept."""

import os
from pathlib import Path
from time import time

import pytest

from explorer.system import long_texts
from explorer.system.data_folders import texts_root
from tests.tiny import has_run_for_long


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path / "runs"))


TEXT = "Ein langer Text. " * 200 + "\ud800"


def test_a_text_is_read_back_by_its_name_by_its_user_alone() -> None:
    name = long_texts.keep(TEXT)
    assert long_texts.NAME.fullmatch(name)
    assert long_texts.keep(TEXT) == name
    assert long_texts.read(name) == TEXT
    assert texts_root().stat().st_mode & 0o077 == 0
    assert [path.name for path in (texts_root() / "all").iterdir()] == [f"{name}.txt"]


def test_no_other_file_and_no_changed_text_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    name = long_texts.keep(TEXT)
    path = texts_root() / "all" / f"{name}.txt"
    Path(texts_root().parent / "secret.txt").write_text("secret", "utf-8")
    for wrong in ("", "../secret", "0" * 32, name.upper() + "x", f"{name}\n", "9" * 100_000):
        assert long_texts.read(wrong) is None, wrong
    path.write_text("something else", "utf-8")
    assert long_texts.read(name) is None
    long = long_texts.keep("a" * 9_000)
    monkeypatch.setenv("EXPLORER_LIMIT_TEXT_CHARACTERS", "2000")
    assert long_texts.read(long) is None, "longer than a text may be"


def test_the_oldest_leave_and_what_was_opened_long_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [long_texts.keep(str(number) * 3_000) for number in range(4)]
    for age, name in enumerate(names):
        os.utime(texts_root() / "all" / f"{name}.txt", (1e9 + age, 1e9 + age))
    monkeypatch.setenv("EXPLORER_LIMIT_TEXTS_DAYS", "100000")
    assert long_texts.read(names[0]) is not None, "opened now"
    monkeypatch.setenv("EXPLORER_LIMIT_TEXTS_BYTES", "28000")
    long_texts.sweep()
    assert [long_texts.read(name) is not None for name in names] == [True, False, False, True]
    os.utime(texts_root() / "all" / f"{names[3]}.txt", (1e9, 1e9))
    monkeypatch.setenv("EXPLORER_LIMIT_TEXTS_DAYS", "30")
    has_run_for_long(texts_root())
    long_texts.sweep()
    assert [path.stem for path in texts_root().glob("*/*")] == [names[0]]


def test_the_texts_of_one_network_leave_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_LIMIT_TEXTS_BYTES", "40000")
    shared = long_texts.keep("a" * 9_000, "class")
    os.utime(texts_root() / "class" / f"{shared}.txt", (time() - 60, time() - 60))
    many = [long_texts.keep(str(number) * 9_000, "another") for number in range(6)]
    assert long_texts.read(shared) is not None
    assert [long_texts.read(name) is not None for name in many].count(True) == 1


def test_where_there_is_no_room_nothing_is_kept() -> None:
    texts_root().parent.mkdir(parents=True, exist_ok=True)
    texts_root().write_text("a file", "utf-8")
    assert long_texts.keep(TEXT) == ""
    assert long_texts.read(long_texts.name_of(TEXT)) is None
    long_texts.sweep()
