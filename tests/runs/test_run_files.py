"""The files of a run: whole ones, metrics that grow, what is noted, and locks with one holder."""

import threading
from pathlib import Path
from unittest.mock import Mock

import pytest

from explorer.runs.metrics import Metrics, MetricsRow, MetricsWriter, cut_after
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


def write(path: Path, *rows: MetricsRow) -> None:
    writer = MetricsWriter(path)
    for row in rows:
        writer.add(row)
    writer.close()


def test_rows_come_back_as_they_went(tmp_path: Path) -> None:
    first, second = MetricsRow(0, value=0.1), MetricsRow(1, loss=3.0, lr=0.1, grad_norm=2.0)
    rows = [first, second, MetricsRow(2, 2.5, 0.1, 1.0, 0.2)]
    write(tmp_path / "m", *rows)
    metrics = Metrics(tmp_path / "m").update()
    assert metrics.rows == rows
    assert metrics.losses() == [(1, 3.0), (2, 2.5)]
    assert metrics.values() == [(0, 0.1), (2, 0.2)]


def test_following_reads_only_whole_lines_that_were_added(tmp_path: Path) -> None:
    path = tmp_path / "m"
    metrics = Metrics(path)
    assert metrics.update().rows == []
    write(path, MetricsRow(1, loss=1.0))
    with path.open("a") as file:
        file.write('{"step": 2, "lo')
        file.flush()
        assert metrics.update().rows == [MetricsRow(1, loss=1.0)]
        file.write('ss": 0.5}\n')
    assert metrics.update().rows == [MetricsRow(1, loss=1.0), MetricsRow(2, loss=0.5)]


def test_damaged_lines_and_numbers_are_passed_over(tmp_path: Path) -> None:
    damaged = b'nonsense\n[1]\n{"step": "x"}\n{{{{{{{{{\n\xff\xfe\n'
    absurd = f'{{"step": 1{"0" * 300}}}\n{{"step": -1}}\n{{"step": true}}\n'.encode()
    numbers = f'{{"step": 3, "loss": NaN, "value": "high", "lr": 1{"0" * 400}}}\n'.encode()
    (tmp_path / "m").write_bytes(damaged + absurd + numbers)
    assert Metrics(tmp_path / "m").update().rows == [MetricsRow(3)]


def test_a_resumed_run_writes_the_rows_after_its_state_again(tmp_path: Path) -> None:
    path = tmp_path / "m"
    write(path, *(MetricsRow(step, loss=1.0) for step in range(1, 6)))
    with path.open("a") as file:
        file.write('{"ste')
    metrics = Metrics(path).update()
    cut_after(path, 3)
    write(path, MetricsRow(4, loss=9.0))
    assert [row.step for row in metrics.update().rows] == [1, 2, 3, 4]
    assert metrics.rows[-1].loss == 9.0
    cut_after(tmp_path / "absent", 3)
