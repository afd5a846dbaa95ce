"""The run folder as its readers see it, and the model that it holds."""

import dataclasses
import os
from pathlib import Path

import pytest

from explorer.catalog import ModelError
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
from explorer.runs.spec import RunError, RunSpec, Status
from explorer.runs.worker import train_to_end
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


def test_runs_are_numbered_and_listed_newest_first(tmp_path: Path) -> None:
    for began in (1000, 3000, 2000):
        run = tiny_run(tmp_path / "made")
        os.utime(run.folder / "spec.json", (began, began))
    (tmp_path / "made").rename(tmp_path / "runs")
    names = [run.name for run in all_runs(tmp_path / "runs")]
    assert names == ["reverse-2", "reverse-3", "reverse-1"]
    assert all_runs(tmp_path / "absent") == []


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
