"""A deleted run can be brought back as it was, counts meanwhile, and is gone for good later."""

import json
import os
import time
from pathlib import Path
from unittest.mock import Mock

import pytest

from explorer.catalog.run_index import index_of
from explorer.runs.deleting import set_aside_of, sweep
from explorer.runs.metrics import best_value
from explorer.runs.quotas import keeping_fault, sizes_of
from explorer.runs.run import all_runs, create, delete, restore, run_named
from explorer.runs.spec import RunError, RunNotes
from explorer.runs.worker import train_to_end
from models.config import TrainConfig
from tests.tiny import tiny_run, tiny_spec

MANY, OTHER = "a" * 32, "b" * 32


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file below it, with the time at which it was written."""
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(path for path in folder.rglob("*") if path.is_file())
    }


def test_undo_gives_a_run_back_bit_for_bit(tmp_path: Path) -> None:
    first, run, last = (tiny_run(tmp_path) for _ in range(3))
    train_to_end(run.folder)
    before = contents(run.folder)
    delete(run)
    assert [each.name for each in all_runs(tmp_path)] == [last.name, first.name]
    with pytest.raises(RunError, match="There is no run called"):
        run_named(tmp_path, run.name)
    assert [each.name for each in set_aside_of(tmp_path, None)] == [f".aside-{run.name}"]
    assert tiny_run(tmp_path).name == "reverse-4", "the name stays free"
    assert contents(restore(tmp_path, run.name).folder) == before
    assert [each.name for each in all_runs(tmp_path)][1:] == [last.name, run.name, first.name]


def test_quotas_count_what_can_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [create(tmp_path, tiny_spec(), owner=MANY) for _ in range(2)]
    delete(create(tmp_path, tiny_spec(), owner=OTHER))
    delete(runs[0])
    assert len(sizes_of(tmp_path, index_of(tmp_path).now())) == 3
    monkeypatch.setenv("EXPLORER_LIMIT_RUNS_OF_READER", "2")
    assert "You have 2 runs; the limit is 2" in str(keeping_fault(tmp_path, MANY))
    create(tmp_path, tiny_spec(), owner=MANY)
    assert [run.owner for run in set_aside_of(tmp_path, None)] == [OTHER], "another's stays"
    with pytest.raises(RunError, match="is gone for good"):
        restore(tmp_path, runs[0].name)
    with pytest.raises(RunError, match="You have 2 runs; the limit is 2"):
        create(tmp_path, tiny_spec(), owner=MANY)


def test_it_is_removed_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_LIMIT_UNDO_SECONDS", "600")
    now, year = time.time(), 365 * 24 * 3600
    delete(tiny_run(tmp_path))
    for away in (0, year, 2 * year, -5, year, year + 590, year + 300, 301, 590):  # it jumps
        monkeypatch.setattr(time, "time", lambda away=away: now + away)
        sweep(tmp_path)
        assert set_aside_of(tmp_path, None), away
    monkeypatch.setattr(time, "time", lambda: now + 1_100)
    sweep(tmp_path)
    assert not set_aside_of(tmp_path, None)
    assert not index_of(tmp_path).now().aside


def test_what_cannot_be_brought_back_is_said(tmp_path: Path) -> None:
    run = tiny_run(tmp_path)
    for name in ("../x", run.name, ""):
        with pytest.raises(RunError):
            restore(tmp_path, name)
    delete(run)
    with pytest.raises(RunError, match="There is no run in the folder"):
        delete(run)
    run.folder.mkdir()
    (run.folder / "x").touch()
    with pytest.raises(RunError, match="The run reverse-1 cannot be brought back"):
        restore(tmp_path, run.name)


def test_runs_stay_in_their_order_though_the_clock_was_set_back(tmp_path: Path) -> None:
    first = tiny_run(tmp_path)
    ahead = time.time() + 3600
    os.utime(first.folder / "spec.json", (ahead, ahead))
    root = first.folder.parent.rename(tmp_path.with_name("runs"))  # no index has read it yet
    later = [tiny_run(root) for _ in range(2)]
    assert [run.name for run in all_runs(root)] == [later[1].name, later[0].name, first.name]


def test_a_full_disk_has_nothing_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = Mock(side_effect=OSError(28, "No space left on device"))
    monkeypatch.setattr("explorer.runs.run.write_json", full)
    with pytest.raises(RunError, match=r"The run cannot be written\. .*no space left on device"):
        tiny_run(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".ran.json"]


def test_a_run_of_an_older_version_is_listed_with_its_curves(tmp_path: Path) -> None:
    """Its settings lack what has come since, its metrics the seconds, and nothing is noted."""
    run = tiny_run(tmp_path)
    train_to_end(run.folder)
    spec, values = run.spec, run.metrics().values()
    plain = spec.to_dict()
    older = {name: plain[name] for name in ("task", "model", "training", "weights_seed")}
    older["training"] = {name: plain["training"][name] for name in ("lr", "steps", "batch_size")}
    (run.folder / "spec.json").write_text(json.dumps(older))
    rows = [json.loads(line) for line in (run.folder / "metrics.jsonl").read_text().splitlines()]
    without = [{name: row[name] for name in row if name != "seconds"} for row in rows]
    (run.folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in without))
    (found,) = all_runs(tmp_path)
    assert (found.spec.task, found.spec.training) == (spec.task, TrainConfig(**older["training"]))
    assert found.metrics().values() == values
    assert {row.seconds for row in found.metrics().rows} == {None}
    assert found.notes() == RunNotes()
    assert best_value(found.folder, "exact match") is not None
