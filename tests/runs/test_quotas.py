"""What is counted and deleted, whose turn it is to train, and what a long step ends."""

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import dask.config
import pytest
from distributed import Client, LocalCluster

from explorer.catalog.run_index import Maker, index_of
from explorer.runs import cluster as cluster_module
from explorer.runs import watchdog
from explorer.runs.cluster import Cluster
from explorer.runs.deleting import set_aside_of, sweep
from explorer.runs.metrics import best_value
from explorer.runs.quotas import closing_bytes, keeping_fault, sizes_of
from explorer.runs.run import Run, all_runs, create, delete, restore, run_named
from explorer.runs.spec import RunError, RunNotes
from explorer.runs.sweep import notes_of
from explorer.runs.watchdog import MAKING, MEASURING, STEP
from explorer.runs.worker import train_to_end
from explorer.system import atomic_files, limits
from explorer.system.atomic_files import Lock, bytes_of
from models.config import TrainConfig
from tests.app.test_throttle import Clock
from tests.served import ROOT, wait_until
from tests.tiny import has_run_for_long, tiny_run, tiny_spec

MANY, OTHER = "a" * 32, "b" * 32

BEGUN: list[str] = []
MAY_END = threading.Event()


def train(folder: str, race: list[str]) -> None:
    """Stands in for the training; a task of Dask is found by its name, so by that of a module."""
    BEGUN.append(Path(folder).name)
    MAY_END.wait()


def add(queue: Cluster, owner: str, network: str = "") -> Run:
    return queue.train_all([tiny_spec()], None, Maker(owner, network))[0]


def waiting(queue: Cluster) -> int:
    """The tasks that have no worker."""
    return int(queue.connect().run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.queued)))


@pytest.fixture
def queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A cluster of one worker, in this process, which trains what it gets until `MAY_END`."""
    BEGUN.clear()
    MAY_END.clear()
    monkeypatch.setattr(cluster_module, "_entry", lambda *_: train)
    alone: dict[str, Any] = {"n_workers": 1, "threads_per_worker": 1, "processes": False}
    with (
        dask.config.set({"distributed.scheduler.worker-saturation": 1.0}),
        LocalCluster(**alone, dashboard_address=None, protocol="inproc://") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        monkeypatch.setattr(Cluster, "connect", lambda _: client)
        found = Cluster(tmp_path / "runs")
        found._client = client
        yield found
        MAY_END.set()


def test_a_readers_ten_runs_keep_no_other_readers_first_waiting(queue: Cluster) -> None:
    made = [add(queue, MANY) for _ in range(10)]
    late = add(queue, OTHER)
    wait_until(lambda: waiting(queue) == 10, "all but one in the queue")
    first, *rest = (run.name for run in made)
    wait_until(lambda: first in BEGUN, "the start of the first")
    with Lock(made[0].folder / "lock") as lock:
        assert lock.acquire()
        assert queue.waiting() == [late.name, *rest]
    MAY_END.set()
    wait_until(lambda: len(BEGUN) == 11, "the end of all runs")
    assert BEGUN.index(late.name) == 1, "after the one that was training, and before nine"


def test_a_network_with_many_cookies_keeps_no_other_networks_first_waiting(queue: Cluster) -> None:
    made = [add(queue, f"{each:032x}", "1" * 32) for each in range(6)]
    late, second = (add(queue, OTHER, "2" * 32) for _ in range(2))
    wait_until(lambda: waiting(queue) == 7, "all but one in the queue")
    MAY_END.set()
    wait_until(lambda: len(BEGUN) == 8, "the end of all runs")
    assert BEGUN[:2] == [made[0].name, late.name], "after the one that was training"
    assert BEGUN[-1] == second.name, "everybody's first is before any second"


def test_a_full_queue_takes_only_its_own(queue: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_LIMIT_QUEUE_OF_READER", "2")
    monkeypatch.setenv("EXPLORER_LIMIT_QUEUE", "3")
    first, second = (add(queue, MANY) for _ in range(2))
    with pytest.raises(RunError, match="You already have 2 runs training or queued"):
        add(queue, MANY)
    third = add(queue, OTHER)
    with pytest.raises(RunError, match="This server already has 3 runs training or queued"):
        add(queue, "c" * 32)
    assert len(all_runs(queue.root)) == 3
    for _ in range(5):
        queue.submit(first)  # as where it was paused and goes on before its process has left
    MAY_END.set()
    wait_until(lambda: not queue.queued(), "the end of all runs")
    assert sorted(BEGUN) == sorted([first.name, first.name, second.name, third.name])


def test_many_cookies_leave_others_room(queue: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_PUBLIC", "1")
    here, elsewhere = "1" * 32, "2" * 32
    for cookie in range(6):
        made = add(queue, f"{cookie:032x}", here)
    with pytest.raises(RunError, match="Your network has reached"):
        add(queue, MANY, here)
    assert len(all_runs(queue.root)) == 6
    assert made.owner == f"{5:032x}"
    add(queue, OTHER, elsewhere)
    held = sum(bytes_of(run.folder) for run in all_runs(queue.root))
    for limit, most in (("RUNS_KEPT", 18), ("RUNS_BYTES", 2 * held)):
        with monkeypatch.context() as patch:
            patch.setenv(f"EXPLORER_LIMIT_{limit}", str(most))
            assert str(keeping_fault(queue.root, MANY, here)).startswith("Your network has reached")
            assert keeping_fault(queue.root, MANY, elsewhere) is None, limit


def test_who_is_stopped_leaves_the_queue(queue: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_LIMIT_QUEUE_OF_READER", "3")
    monkeypatch.setenv("EXPLORER_LIMIT_QUEUE", "3")
    first, stopped, deleted = (add(queue, MANY) for _ in range(3))
    wait_until(lambda: first.name in BEGUN and waiting(queue) == 2, "one that trains")
    queue.stop(stopped)
    queue.delete(deleted)
    assert waiting(queue) == 0
    assert stopped.name not in (queue.queued() or ())
    assert stopped.status().state == "stopped"
    queue.stop(first)
    assert first.name in (queue.queued() or ()), "it has a worker, which ends it"
    again = [add(queue, MANY) for _ in range(2)]
    with pytest.raises(RunError, match="You already have 3 runs training or queued"):
        add(queue, MANY)
    MAY_END.set()
    wait_until(lambda: not queue.queued(), "the end of all runs")
    assert sorted(BEGUN) == sorted(run.name for run in (first, *again))


def test_bytes_are_counted_after_a_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = create(tmp_path, tiny_spec(), owner=MANY)
    monkeypatch.setenv("EXPLORER_LIMIT_RUNS_BYTES_OF_READER", "5000")
    assert keeping_fault(tmp_path, MANY) is None
    train_to_end(run.folder)
    assert bytes_of(run.folder) > 5000
    assert "Delete one to start another" in str(keeping_fault(tmp_path, MANY))
    assert keeping_fault(tmp_path, OTHER) is None


def test_only_old_runs_of_strangers_leave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_LIMIT_RUNS_DAYS", "7")
    last_week = time.time() - 8 * 24 * 3600
    made, root = tmp_path / "made", tmp_path / "runs"
    old, resumed = (create(made, tiny_spec(), owner=MANY) for _ in range(2))
    hosts = tiny_run(made)
    for run in (old, resumed, hosts):
        os.utime(run.folder / "spec.json", (last_week, last_week))
    for run in (old, hosts):
        os.utime(run.folder / "status.json", (last_week, last_week))
    made.rename(root)
    has_run_for_long(root)
    new = create(root, tiny_spec(), owner=OTHER)
    assert {run.name for run in all_runs(root)} == {resumed.name, hosts.name, new.name}
    monkeypatch.setenv("EXPLORER_LIMIT_UNDO_SECONDS", "0")
    back = restore(root, old.name)
    sweep(root)
    assert back.name in {run.name for run in all_runs(root)}, "its days begin anew"
    os.utime(back.folder / "status.json", (last_week, last_week))
    sweep(root)
    sweep(root)
    (aside,) = set_aside_of(root, MANY)
    os.utime(root / aside.name, (last_week - 1, last_week - 1))
    os.utime(root / aside.name / "status.json", (2 * last_week - time.time() - 9,) * 2)
    sweep(root)
    assert not set_aside_of(root, MANY), "it stood aside for as many days"


def test_training_leaves_room_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the start there must be room for the end of the run, and later for it to end."""
    run = tiny_run(tmp_path, steps=100_000)
    size = closing_bytes(run.spec)
    said = limits.DISK_LEFT.refusal(size)
    free = SimpleNamespace(free=limits.DISK_LEFT.most + size - 1)
    monkeypatch.setattr(atomic_files.shutil, "disk_usage", lambda _: free)
    with pytest.raises(RunError, match=re.escape(said)):
        tiny_run(tmp_path)
    assert train_to_end(run.folder) == "stopped"
    assert run.status().message == said
    assert run.status().can_resume


def test_a_step_that_takes_too_long_ends_its_process(tmp_path: Path) -> None:
    run = tiny_run(tmp_path, steps=100_000)
    code = "import sys; from explorer.runs.worker import train_to_end; train_to_end(sys.argv[1])"
    call = [sys.executable, "-c", code, str(run.folder)]
    env = os.environ | {"EXPLORER_LIMIT_STEP_SECONDS": "0"}
    ended = subprocess.run(call, cwd=ROOT, env=env, check=False)
    assert (ended.returncode, run.has_worker(), run.status().state) == (1, False, "stopped")
    assert run.status().message.startswith("The run was stopped because one step took more than")


def test_the_limit_of_a_step_is_that_of_a_step_and_what_took_the_time_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that goes on after Stop, in a single layer, has two seconds of processor time."""
    monkeypatch.setenv("EXPLORER_PUBLIC", "1")
    ended, clock = list[bool](), Clock()
    monkeypatch.setattr(watchdog, "end_process", lambda: ended.append(True))
    monkeypatch.setattr(watchdog.time, "process_time", clock.monotonic)
    for begun, later, reason in (
        ([MAKING], 599, ""),
        ([MAKING], 600, f"{MAKING} took more than 600 seconds. Make the model or its data"),
        ([STEP, MEASURING], 600, f"{MEASURING} took more than 600 seconds. Make the model or its"),
        ([MEASURING, STEP], 9, ""),
        ([MEASURING, STEP], 10, "one step took more than 10 seconds. Make the model or the batch"),
        (["stop", STEP], 3, "run was stopped within a step"),
        (["stop", STEP], 2, ""),
        (["stop", MEASURING], 3, ""),
    ):
        ended.clear()
        run = tiny_run(tmp_path)
        dog = watchdog.Watchdog(run, clock=clock.monotonic)
        for what in begun:
            clock.now += 100
            run.command("stop") if what == "stop" else dog.begin(what)
        dog.look()
        clock.now += later
        dog.look()
        assert (run.stop_reason() != "", bool(ended)) == (reason != "", reason != ""), begun
        assert reason in run.status().message


def test_a_race_is_taken_as_a_whole_or_not(queue: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_PUBLIC", "1")
    whose, notes = Maker(MANY, "1" * 32), notes_of("Race")
    with pytest.raises(RunError, match=r"These 3 runs .* room for 2 more: at most 2 runs are t"):
        queue.train_all([tiny_spec()] * 3, None, whose, notes)
    assert all_runs(queue.root) == []
    made = queue.train_all([tiny_spec()] * 2, None, whose, notes)
    assert {run.notes() for run in made} == {notes}
    with pytest.raises(RunError, match="room for 0 more"):
        queue.train_all([tiny_spec()] * 2, None, whose, notes)
    monkeypatch.setenv("EXPLORER_LIMIT_QUEUE_OF_READER", "9")
    monkeypatch.setenv("EXPLORER_LIMIT_RUNS_OF_READER", "3")
    with pytest.raises(RunError, match=r"room for 1 more: at most 3 runs are kept here\."):
        queue.train_all([tiny_spec()] * 2, None, whose, notes)
    assert len(all_runs(queue.root)) == 2


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
