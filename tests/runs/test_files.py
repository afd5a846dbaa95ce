"""Whole files and locks that die with their holder."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from explorer.runs.files import LARGEST_JSON, Lock, is_held, read_json, write_json, write_text

ROOT = Path(__file__).resolve().parent.parent.parent


def test_a_reader_never_meets_half_a_file(tmp_path: Path) -> None:
    path = tmp_path / "status.json"
    long = {"a": "x" * 50_000}
    write_json(path, long)
    ended = threading.Event()

    def keep_writing() -> None:
        for _ in range(200):
            write_json(path, long)
        ended.set()

    writer = threading.Thread(target=keep_writing)
    writer.start()
    while not ended.is_set():
        assert read_json(path) == long
    writer.join()
    assert [file.name for file in tmp_path.iterdir()] == ["status.json"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    write_text(tmp_path / "text", "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(tmp_path / "text", "half a pair \ud800")
    assert (tmp_path / "text").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("content", ["", "[1]", "{", "[" * 100_000, " " * (LARGEST_JSON + 1)])
def test_what_is_no_object_is_a_value_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(ValueError):
        read_json(tmp_path / "a.json")


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


def test_a_killed_holder_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    hold = "\n".join(
        (
            "import sys",
            "from pathlib import Path",
            "from explorer.runs.files import Lock",
            "lock = Lock(Path(sys.argv[1]))",
            "print(lock.acquire(), flush=True)",
            "sys.stdin.read()",
        )
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", hold, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "True\n"
    assert is_held(path)
    holder.kill()
    holder.wait()
    assert not is_held(path)
