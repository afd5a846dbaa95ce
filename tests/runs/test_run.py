"""The folder of a run as its readers see it, its files, and the model that it holds."""

import dataclasses
import threading
from pathlib import Path
from unittest.mock import Mock

import pytest

from explorer.catalog import ModelError
from explorer.runs.metrics import Metrics, MetricsRow, MetricsWriter, cut_after
from explorer.runs.run import (
    Run,
    all_runs,
    create,
    create_in,
    delete,
    open_folder,
    restore,
    run_named,
)
from explorer.runs.spec import (
    LONGEST_NOTE,
    MOST_TAGS,
    RunError,
    RunNotes,
    RunSpec,
    Status,
    as_tags,
    notes_in,
    write_notes,
)
from explorer.runs.worker import train_to_end
from explorer.system import atomic_files
from explorer.system.atomic_files import Lock, write_json
from explorer.system.running_time import TIME_FILE
from explorer.tasks import TASKS
from tests.tiny import tiny_run, tiny_spec


def test_a_new_run_says_what_was_asked_for_and_waits(tmp_path: Path) -> None:
    run = create(tmp_path, tiny_spec(), text="To be")
    assert run.name == "reverse-1"
    assert run.spec == tiny_spec()
    assert run.text() == "To be"
    assert run.status() == Status(state="waiting", steps=12)
    assert run.latest() is None
    assert run.checkpoint() is None
    assert run.metrics().rows == []
    assert {path.name for path in tmp_path.iterdir()} == {run.name, TIME_FILE}


def test_no_name_leads_out_of_the_folder_of_runs(tmp_path: Path, subtests: pytest.Subtests) -> None:
    root = tmp_path / "runs"
    with pytest.raises(RunError, match="no task called"):
        create(root, dataclasses.replace(tiny_spec(), task="../outside"))
    assert list(tmp_path.iterdir()) == []
    tiny_run(root)
    for folder in (tmp_path, tmp_path / "secret", root / ".hidden", root / "a" / "b"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "spec.json").write_text("{}")
    for name in ("..", "../secret", "/etc", "a/b", "", ".hidden", "reverse-1/..", "a\0b", "é"):
        with subtests.test(name=name), pytest.raises(RunError, match="There is no run called"):
            run_named(root, name)
    assert run_named(root, "reverse-1").spec == tiny_spec()


def test_a_run_in_a_folder_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny_run(tmp_path)  # it counts only in the app's folder of runs
    monkeypatch.setenv("EXPLORER_LIMIT_RUNS_KEPT", "1")
    assert create_in(tmp_path / "Mine_2", tiny_spec()).folder == tmp_path / "Mine_2"
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path))
    for folder, why in (("Mine_2", "maximum of 1 run"), ("a b", "letters, digits")):
        with pytest.raises(RunError, match=why):
            create_in(tmp_path / folder, tiny_spec())
    monkeypatch.delenv("EXPLORER_RUNS")
    with pytest.raises(RunError, match="not empty"):
        create_in(tmp_path / "Mine_2", tiny_spec())
    assert {path.name for path in tmp_path.iterdir()} == {"Mine_2", "reverse-1", TIME_FILE}


def test_what_makes_no_run_is_said_in_its_words(tmp_path: Path, subtests: pytest.Subtests) -> None:
    seven_heads = TASKS["reverse"].model.replace(n_heads=7)
    for spec, sentence in (
        (dataclasses.replace(tiny_spec(), model=seven_heads), "not divisible by n_heads 7"),
        (tiny_spec(lr=-1.0), "lr must be"),
        (dataclasses.replace(tiny_spec(), weights_seed=-1), "weights_seed must be"),
        (dataclasses.replace(tiny_spec(), stop_at=float("nan")), "stop_at must be"),
    ):
        with subtests.test(sentence), pytest.raises(RunError, match=sentence):
            create(tmp_path, spec)


def test_a_spec_survives_json_and_refuses_what_it_does_not_know() -> None:
    spec = dataclasses.replace(tiny_spec(), stop_at=0.9)
    assert RunSpec.from_dict(spec.to_dict()) == spec
    with pytest.raises(ValueError, match="unknown keys: 'colour'"):
        RunSpec.from_dict(spec.to_dict() | {"colour": 1})
    with pytest.raises(ValueError, match="There is no model and no task"):
        RunSpec.from_dict({"training": {}})


def test_a_damaged_spec_stops_no_other_run(tmp_path: Path, subtests: pytest.Subtests) -> None:
    damaged, whole = tiny_run(tmp_path), tiny_run(tmp_path)
    sentence = r"^The run reverse-1 cannot be read: [^\n]+$"
    numbers = '{"task": 1, "model": 2, "training": 3}'
    for content in ("", "{}", "[]", "{" * 5000, numbers, "\0\xff"):
        (damaged.folder / "spec.json").write_text(content, encoding="latin-1")
        with subtests.test(content=content[:50]), pytest.raises(RunError, match=sentence):
            _ = damaged.spec
    delete(damaged)
    assert Run(restore(tmp_path, damaged.name).folder).name == damaged.name
    assert len(all_runs(tmp_path)) == 2
    assert whole.spec == tiny_spec()


def test_a_damaged_status_is_one_sentence(tmp_path: Path, subtests: pytest.Subtests) -> None:
    run = tiny_run(tmp_path)
    sentence = "status of the run reverse-1 cannot be read: delete the run, or restore its file"
    wrong = {
        "state": ['"flying"', "[]"],
        "step": ['"3"', "NaN", "null", "-1", f"1{'0' * 300}"],
        "measured_at": [f"1{'0' * 300}"],
        "loss": ["1e300", "[]"],
        "seconds": [f"1{'0' * 400}"],
        "value": ["Infinity"],
        "measure": ["5", '"![](http://example.org/x.png)"'],
        "message": ["{}"],
    }
    damaged = [f'{{"{name}": {value}}}' for name, values in wrong.items() for value in values]
    for content in ("", "{}x", *damaged):
        (run.folder / "status.json").write_text(content)
        with subtests.test(content=content), pytest.raises(RunError, match=sentence):
            run.status()
    with pytest.raises(RunError, match="There is no run in the folder"):
        Run(tmp_path / "absent").status()


def test_only_a_living_worker_trains_and_nobody_marks_its_state(tmp_path: Path) -> None:
    run = tiny_run(tmp_path)
    status = Status(state="training", step=5, steps=12, steps_per_second=10.0, loss=1.5)
    write_json(run.folder / "status.json", status.to_dict())
    assert run.status().state == "interrupted"
    assert run.status().can_resume
    with Lock(run.folder / "lock") as lock:
        assert lock.acquire()
        assert run.status() == status
        assert status.seconds_left == pytest.approx(0.7)
        assert status.share == pytest.approx(5 / 12)
        run.mark("waiting")
        assert run.status() == status
    run.mark("waiting")
    assert run.status() == status.replace(state="waiting")


def test_a_command_that_is_none_is_refused_or_not_heard(tmp_path: Path) -> None:
    run = tiny_run(tmp_path)
    assert run.last_command() == "train"
    for command, heard in (("pause", "pause"), ("resume", "train")):
        run.command(command)
        assert run.last_command() == heard
    with pytest.raises(RunError):
        run.command("explode")
    (run.folder / "control.json").write_text('{"command": ["rm"]}')
    assert run.last_command() == "train"


def test_a_run_is_opened_by_its_folder_and_by_that_of_its_weights(tmp_path: Path) -> None:
    run, reverse = tiny_run(tmp_path), TASKS["reverse"]
    with pytest.raises(ModelError, match="The run reverse-1 has no weights yet"):
        open_folder(run.folder)
    train_to_end(run.folder)
    for folder in (run.folder, run.snapshots()[0][1]):
        opened = open_folder(folder)
        assert opened.task is reverse
        assert (opened.example, opened.expectation) == (reverse.example, reverse.expectation)

    other = TASKS["negation"].tokenizer
    assert other.vocab_size > run.spec.model.vocab_size
    (run.folder / "checkpoint" / "tokenizer.json").write_text(other.to_json() or "")
    with pytest.raises(ModelError, match="has more tokens than its embedding has rows"):
        open_folder(run.folder)


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
