"""Whole files and what is noted in them, and locks with one holder."""

import threading
from pathlib import Path
from unittest.mock import Mock

import pytest

from explorer.runs.spec import LONGEST_NOTE, MOST_TAGS, RunNotes, as_tags, notes_in, write_notes
from explorer.system import atomic_files
from tests.tiny import tiny_run


def test_a_reader_never_meets_half_a_file(tmp_path: Path) -> None:
    path = tmp_path / "status.json"
    long = {"a": "x" * 50_000}
    atomic_files.write_json(path, long)

    def keep_writing() -> None:
        for _ in range(100):
            atomic_files.write_json(path, long)

    writer = threading.Thread(target=keep_writing)
    writer.start()
    while writer.is_alive():
        assert atomic_files.read_json_object(path) == long
    writer.join()
    assert [file.name for file in tmp_path.iterdir()] == ["status.json"]


def test_a_failed_write_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_notes(tmp_path, RunNotes(note="old"))
    with pytest.raises(UnicodeEncodeError):
        atomic_files.write_text(tmp_path / "notes.json", "half a pair \ud800")
    monkeypatch.setattr(Path, "replace", Mock(side_effect=InterruptedError))
    with pytest.raises(InterruptedError):
        write_notes(tmp_path, RunNotes(note="new"))
    assert notes_in(tmp_path).note == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_what_is_no_object_is_a_value_error_and_no_notes(tmp_path: Path) -> None:
    for text in ("", "[1]", "{", "[" * 100_000, " " * (atomic_files.LARGEST_JSON + 1)):
        (tmp_path / "notes.json").write_text(text)
        with pytest.raises(ValueError):
            atomic_files.read_json_object(tmp_path / "notes.json")
        assert notes_in(tmp_path) == RunNotes(), text[:20]
    (tmp_path / "notes.json").write_text('{"tags": 3, "note": [], "sweep": "../x"}')
    assert notes_in(tmp_path) == RunNotes()


def test_a_lock_has_one_holder_and_asking_takes_it_from_nobody(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not atomic_files.is_held(path)
    first, second = atomic_files.Lock(path), atomic_files.Lock(path)
    assert first.acquire()
    assert atomic_files.is_held(path)
    assert not second.acquire()
    first.release()
    assert not atomic_files.is_held(path)
    assert second.acquire()
    second.release()


def test_notes_are_kept_as_far_as_they_are_short(tmp_path: Path) -> None:
    run = tiny_run(tmp_path)
    assert run.notes() == RunNotes()
    tags = ("good", "good", "  two \n words ", "")
    run.note(RunNotes(tags, "x" * 2 * LONGEST_NOTE, "0" * 12, "T"))
    found = run.notes()
    assert found.tags == ("good", "two words")
    assert (len(found.note), found.sweep, found.sweep_title) == (LONGEST_NOTE, "0" * 12, "T")
    assert len(as_tags(map(str, range(100)))) == MOST_TAGS
