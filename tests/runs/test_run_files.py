"""Whole files, and locks with one holder."""

import threading
from pathlib import Path

import pytest

from explorer.runs.run_files import (
    LARGEST_JSON,
    Lock,
    is_held,
    read_json_object,
    write_json,
    write_text,
)


def test_a_reader_never_meets_half_a_file(tmp_path: Path) -> None:
    path = tmp_path / "status.json"
    long = {"a": "x" * 50_000}
    write_json(path, long)

    def keep_writing() -> None:
        for _ in range(100):
            write_json(path, long)

    writer = threading.Thread(target=keep_writing)
    writer.start()
    while writer.is_alive():
        assert read_json_object(path) == long
    writer.join()
    assert [file.name for file in tmp_path.iterdir()] == ["status.json"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    write_text(tmp_path / "text", "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(tmp_path / "text", "half a pair \ud800")
    assert (tmp_path / "text").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_what_is_no_object_is_a_value_error(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for content in ("", "[1]", "{", "[" * 100_000, " " * (LARGEST_JSON + 1)):
        (tmp_path / "a.json").write_text(content)
        with subtests.test(content=content[:9]), pytest.raises(ValueError):
            read_json_object(tmp_path / "a.json")


def test_a_lock_has_one_holder_and_asking_takes_it_from_nobody(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not is_held(path)
    first, second = Lock(path), Lock(path)
    assert first.acquire()
    assert is_held(path)
    assert not second.acquire()
    first.release()
    assert not is_held(path)
    assert second.acquire()
    second.release()
