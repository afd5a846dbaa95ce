"""The processes that train: started, found again, ended, or somebody else's."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from explorer.runs import cluster as cluster_module
from explorer.runs.cluster import Cluster
from explorer.runs.files import read_json, write_json
from explorer.runs.run import Run, RunError, named
from tests.runs.making import tiny_run
from tests.served import ROOT, processes_of, wait_until, worker_of

pytestmark = pytest.mark.timeout(300)

ENDLESS = 1_000_000


def wait_for_step(run: Run, step: int) -> None:
    wait_until(lambda: run.status().step >= step, f"step {step} of {run.name}")


def test_servers_that_start_at_once_share_one_cluster_and_the_last_ends_it(root: Path) -> None:
    first, second, last = (Cluster(root) for _ in range(3))
    for thread in [cluster.start() for cluster in (first, second, last)]:
        thread.join()
    assert first.address == second.address == last.address
    first.close()
    short, endless, queued = (tiny_run(root, steps=n) for n in (12, ENDLESS, ENDLESS))
    second.submit(short)
    wait_until(lambda: short.status().state == "done", "the end of the short run")
    for run in (endless, queued):
        last.submit(run)
    wait_for_step(endless, 5)
    assert last.has(endless)
    assert not last.has(short)

    file = root / ".cluster.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    listening = [
        connection.laddr.ip
        for process in processes_of(root)
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert set(listening) == {"127.0.0.1"}

    second.close()
    assert processes_of(root)
    last.close()
    wait_until(lambda: processes_of(root) == [], "the end of every process")
    assert not file.exists()
    assert endless.status().state == "interrupted"
    assert [int(path.name[5:]) for path in (endless.folder / "state").iterdir()] == [
        endless.status().step
    ]
    assert not queued.has_worker()


SERVER = """
import sys
from pathlib import Path
from explorer.runs.cluster import Cluster
from explorer.runs.run import named
root = Path(sys.argv[1])
cluster = Cluster(root)
cluster.submit(named(root, sys.argv[2]))
print(cluster.address, flush=True)
sys.stdin.read()
"""


def test_a_killed_server_or_worker_takes_no_run_with_it(root: Path) -> None:
    run = tiny_run(root, steps=ENDLESS)
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(root), run.name],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    address = server.stdout.readline().strip()
    wait_for_step(run, 3)
    server.kill()
    server.wait()

    reached = run.status().step
    wait_for_step(run, reached + 5)
    following = Cluster(root)
    assert following.address == address
    assert following.has(run)
    assert run.status().state == "training"
    run.command("pause")
    wait_until(lambda: run.status().state == "paused", "the pause")
    paused_at = run.status().step
    run.command("resume")
    following.submit(run)
    wait_for_step(run, paused_at + 1)

    worker = worker_of(run)
    worker.kill()
    wait_until(lambda: not run.has_worker() or not worker.is_running(), "the end of the worker")
    reached = run.status().step
    wait_for_step(run, reached + 5)
    assert run.status().state == "training"

    following.close()
    wait_until(lambda: processes_of(root) == [], "the end of every process")
    assert run.status().state == "interrupted"


def test_an_address_of_elsewhere_is_not_believed_from_a_file(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(*_: object, **__: object) -> None:
        raise AssertionError("nobody is asked there")

    monkeypatch.setattr(cluster_module, "Client", connect)
    root.mkdir()
    elsewhere = (
        "tcp://192.0.2.1:8786",
        "tls://127.0.0.1:9",
        "inproc://1",
        "tcp://127.0.0.1:9/x",
        7,
    )
    for address in elsewhere:
        write_json(root / ".cluster.json", {"address": address, "id": "Scheduler-x"})
        assert Cluster(root)._attach_to_found() is None, address


def test_an_address_that_does_not_answer_is_replaced_and_keeps_nobody_waiting(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = "tcp://127.0.0.1:9"
    root.mkdir()
    write_json(root / ".cluster.json", {"address": nobody, "id": "Scheduler-x"})
    cluster = Cluster(root)
    run = tiny_run(root)
    assert not cluster.has(run), "nothing is started to ask it"
    assert not cluster.is_up
    assert processes_of(root) == []

    monkeypatch.setattr(cluster_module, "ANSWER_WITHIN", 0.5)
    assert cluster.address != nobody
    assert read_json(root / ".cluster.json")["address"] == cluster.address
    scheduler = next(p for p in processes_of(root) if _listens_at(p, cluster.address))
    scheduler.suspend()
    try:
        assert not cluster.has(run), "it did not answer"
    finally:
        scheduler.resume()
    monkeypatch.undo()
    cluster.close()


def _listens_at(process: psutil.Process, address: str) -> bool:
    port = int(address.rpartition(":")[2])
    listening = [c for c in process.net_connections("inet") if c.status == psutil.CONN_LISTEN]
    return any(connection.laddr.port == port for connection in listening)


def test_a_cluster_that_nobody_needs_ends_itself(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXPLORER_CLUSTER_LONELY_SECONDS", "8")  # a slow start takes seconds
    run = tiny_run(root, steps=40)
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(root), run.name],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    wait_for_step(run, 1)
    server.kill()
    server.wait()
    wait_until(lambda: processes_of(root) == [], "the end of every process")
    assert run.status().state == "done"


@pytest.fixture
def somebody_elses(root: Path, tmp_path: Path) -> Iterator[str]:
    """A scheduler and two workers, started elsewhere, that know nothing of this project."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    address_file = elsewhere / "scheduler.json"
    scheduler = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1"]
    scheduler += ["--port", "0", "--no-dashboard", "--dashboard-address", "127.0.0.1:0"]
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--nthreads", "1"]
    worker += ["--no-dashboard", "--host", "127.0.0.1"]
    with_file = ["--scheduler-file", str(address_file)]
    commands = [scheduler + with_file, worker + with_file, worker + with_file]
    started = []
    for command in commands:
        started.append(
            subprocess.Popen(command, cwd=elsewhere, stderr=subprocess.DEVNULL, env=os.environ)
        )
        wait_until(address_file.exists, "the scheduler's file")
    yield str(read_json(address_file)["address"])
    for process in reversed(started):
        process.terminate()
    for process in started:
        process.wait(30)


def test_the_same_run_trains_on_a_cluster_given_by_its_address(
    root: Path, somebody_elses: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DASK_ADDRESS", somebody_elses)
    cluster = Cluster(root)
    cluster.connect().wait_for_workers(2, timeout=30)
    runs = [tiny_run(root, steps=ENDLESS) for _ in range(2)]
    for run in runs:
        cluster.submit(run)
    for run in runs:
        wait_for_step(run, 3)
    assert all(run.status().state == "training" for run in runs), "two workers, two runs at once"
    for run in runs:
        run.command("stop")
        wait_until(lambda run=run: run.status().state == "stopped", "the stop")  # type: ignore[misc]
        assert run.checkpoint() is not None
    assert not (root / ".cluster.json").exists()
    processes = len(processes_of(root))
    cluster.close()
    assert len(processes_of(root)) == processes, "somebody else's cluster is not ours to end"


def test_an_address_where_nobody_answers_is_one_sentence(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_module, "ANSWER_WITHIN", 0.5)
    monkeypatch.setenv("DASK_ADDRESS", "tcp://127.0.0.1:9")
    run = tiny_run(root)
    cluster = Cluster(root)
    cluster.start().join()
    with pytest.raises(RunError, match="No Dask scheduler answers at tcp://"):
        cluster.submit(run)
    assert not cluster.has(run)
    cluster.close()
    assert named(root, run.name).status().state == "waiting"
