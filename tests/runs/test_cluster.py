"""The processes that train: started once, found again, ended, or somebody else's."""

import datetime
import logging
import os
import re
import runpy
import socket
import ssl
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import dask
import psutil
import pytest
import yaml  # type: ignore[import-untyped]
from distributed import Client, Scheduler, Security, Status

from explorer.runs import cluster as cluster_module
from explorer.runs import cluster_key, cluster_processes
from explorer.runs.cluster import SILENT, Cluster
from explorer.runs.cluster_key import private_folder, security_of
from explorer.runs.run import Run
from explorer.runs.spec import RunError
from explorer.system.atomic_files import read_json_object, write_json
from tests.calls import run_in_thread
from tests.served import ROOT, processes_of, wait_until, worker_of
from tests.server.test_json_logs import MISHAPS, TEXT, noted_by
from tests.tiny import tiny_run

pytestmark = pytest.mark.timeout(300)

ENDLESS = 1_000_000
NOBODY = "127.0.0.1:9"
KEY_THERE = "/data/training.pem"
LOG = "training.log"
ADMIN_TOKEN = "of the server and of nobody else"


def wait_for_step(run: Run, step: int) -> None:
    wait_until(lambda: run.status().step >= step, f"step {step} of {run.name}")


def goes_on(run: Run) -> None:
    wait_for_step(run, run.status().step + 5)


def stop(run: Run) -> None:
    run.command("stop")
    wait_until(lambda: run.status().state == "stopped", "the stop")


def address_of(cluster: Cluster) -> str:
    return str(cluster.connect().scheduler_info()["address"])


def listening(process: psutil.Process) -> set[str]:
    """The addresses where others can reach this process."""
    found = process.net_connections("inet")
    local = [each.laddr for each in found if each.status == psutil.CONN_LISTEN]
    return {f"{address.ip}:{address.port}" for address in local}


def only_who_owns_the_key_is_heard(root: Path, address: str) -> psutil.Process:
    """The process that listens at this address, the scheduler's."""
    file, key = root / ".cluster.json", root / ".cluster.pem"
    assert {stat.S_IMODE(each.stat().st_mode) for each in (file, key)} == {0o600}
    work = {each.suffix or each.name: each for each in (root / ".dask").iterdir()}
    assert set(work) == {"dask-scratch-space", ".json"}, "nobody else writes where they work"
    assert not [each for each in work.values() if each.stat().st_mode & 0o077], "or reads there"
    processes = processes_of(root)
    (secret,) = re.findall(r"BEGIN PRIVATE KEY-----\n(.+?)\n-----END", key.read_text(), re.DOTALL)
    assert len(processes) >= 3, "a scheduler, a nanny and its worker"
    for process in processes:
        shown = " ".join([*process.cmdline(), *process.environ().values()])
        assert "PRIVATE" not in shown
        assert ADMIN_TOKEN not in shown
        assert not [line for line in secret.split() if line in shown]
    reached = {process: listening(process) for process in processes}
    for at in set().union(*reached.values()):
        host, port = at.split(":")
        assert host == "127.0.0.1"
        with pytest.raises((ssl.SSLError, ConnectionError)) as refusal:
            says_hello(int(port))
        assert "WRONG_VERSION" not in str(refusal.value), "it speaks TLS"

    strangers_are_refused(root, address)
    at = address.removeprefix("tls://")
    (scheduler,) = (process for process, each in reached.items() if at in each)
    assert listening(scheduler) == {at}, "no dashboard"
    return scheduler


def strangers_are_refused(root: Path, address: str) -> None:
    """With another key, and without one."""
    key = Security(**security_of(root.with_name("strangers.pem")))
    plain = address.replace("tls://", "tcp://")
    for refused, security in ((plain, Security(require_encryption=False)), (address, key)):
        with pytest.raises((OSError, RuntimeError)):
            Client(refused, security=security, timeout=1, set_as_default=False)


def says_hello(port: int) -> None:
    """As a stranger, who has no certificate; what every port of the cluster must refuse."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    plain = socket.create_connection(("127.0.0.1", port), timeout=10)
    with plain, context.wrap_socket(plain) as stranger:
        stranger.sendall(b"hello")
        stranger.recv(1)


SERVER = """
import sys
from pathlib import Path
from explorer.runs.cluster import Cluster
from explorer.runs.run import run_named
root = Path(sys.argv[1])
first, second = Cluster(root), Cluster(root)
for thread in [first.start(), second.start()]:
    thread.join()
second.submit(run_named(root, sys.argv[2]))
print(*(each.connect().scheduler_info()["address"] for each in (first, second)), flush=True)
sys.stdin.read()
"""
"""Two servers that start at once, in one process; the second has a run to train."""


def test_servers_that_start_at_once_share_one_cluster_and_the_last_ends_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed server or worker takes no run with it.

    What an earlier server left does not answer any more, and keeps nobody waiting.
    """
    monkeypatch.setenv("EXPLORER_ADMIN_TOKEN", ADMIN_TOKEN)
    file = root / ".cluster.json"
    root.mkdir()
    write_json(file, {"address": f"tls://{NOBODY}", "id": "Scheduler-x"})
    run, queued = (tiny_run(root, steps=ENDLESS) for _ in range(2))
    call, pipe = [sys.executable, "-c", SERVER, str(root), run.name], subprocess.PIPE
    server = subprocess.Popen(call, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)
    assert server.stdout is not None
    first, second = server.stdout.readline().split()
    assert first == second != f"tls://{NOBODY}"
    assert read_json_object(file)["address"] == first
    wait_for_step(run, 3)
    server.kill()
    server.wait()
    goes_on(run)

    following, last = Cluster(root), Cluster(root)
    assert following.was_left
    assert following.queued() is None, "it is asked once the others are found"
    assert address_of(following) == address_of(last) == first
    assert run.name in (following.queued() or ())
    run.command("pause")
    wait_until(lambda: run.status().state == "paused", "the pause")
    wait_until(lambda: run.name not in (last.queued() or ()), "its place is free")
    run.command("resume")
    for each in (run, queued):
        following.submit(each)
    goes_on(run)
    assert queued.name in (last.queued() or ())

    worker = worker_of(run)
    worker.kill()
    wait_until(lambda: not run.has_worker() or not worker.is_running(), "the end of the worker")
    goes_on(run)
    assert run.status().state == "training"

    scheduler = only_who_owns_the_key_is_heard(root, first)
    with monkeypatch.context() as patch:
        patch.setattr(cluster_module, "ANSWER_WITHIN", 0.2)
        scheduler.suspend()
        try:
            assert queued.name not in (last.queued() or ()), "it did not answer"
        finally:
            scheduler.resume()
    following.close()
    assert processes_of(root)
    last.close()
    wait_until(lambda: processes_of(root) == [], "the end of every process")
    assert not last.was_left
    assert run.status().state == "interrupted"
    kept = [int(path.name.removeprefix("step-")) for path in (run.folder / "state").iterdir()]
    assert kept == [run.status().step]
    assert not queued.has_worker()


def test_a_cluster_without_a_server_and_a_run_ends_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_processes, "UNUSED_SECONDS", 1e-6)
    for place, name in ((logging.Handler, "format"), (sys, "excepthook")):
        monkeypatch.setattr(place, name, getattr(place, name))  # it is put back afterwards
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)

    no_dashboard: Any = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}

    async def serve() -> None:
        async with Scheduler(protocol="inproc://", **no_dashboard) as scheduler:
            scheduler.tasks["train/reverse-1"] = Mock()
            cluster_processes.dask_setup(scheduler)
            check = scheduler.explorer_checks.callback
            await check()
            async with Client(scheduler.address, asynchronous=True, set_as_default=False):
                scheduler.tasks.clear()
                await check()
                assert scheduler.status == Status.running
            await scheduler.finished()

    run_in_thread(serve())


@pytest.fixture
def somebody_elses(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A scheduler and two workers, started elsewhere, that know nothing of this project.

    They listen to who has the key, by the settings of deploy/compose.yaml; so does this process.
    """
    address_file = tmp_path / "scheduler.json"
    key = str(tmp_path / "training.pem")
    monkeypatch.setattr(sys, "argv", ["", key])
    runpy.run_path(cluster_key.__file__, run_name="__main__")
    recipe = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text("utf-8"))
    with_key = {name: value.replace(KEY_THERE, key) for name, value in recipe["x-key"].items()}
    common = ["--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(address_file)]
    scheduler = ["dask_scheduler", "--port", "0", "--protocol", "tls://"]
    worker = ["dask_worker", "--nthreads", "1", "--no-nanny"]
    started = []
    environment = os.environ | with_key
    for module, *options in (scheduler, worker, worker):
        command = [sys.executable, "-m", f"distributed.cli.{module}", *options, *common]
        with (tmp_path / LOG).open("a") as log:
            started.append(subprocess.Popen(command, cwd=tmp_path, stderr=log, env=environment))
    wait_until(address_file.exists, "the scheduler's file")
    dask.config.refresh(env=environment)
    yield str(read_json_object(address_file)["address"])
    dask.config.refresh()
    for process in reversed(started):
        process.kill()
    for process in started:
        process.wait(30)


def test_a_run_outlives_the_worker_of_a_given_cluster(root: Path, somebody_elses: str) -> None:
    """Two runs train at once; one goes on on the other worker, from the state saved last."""
    assert somebody_elses.startswith("tls://")
    strangers_are_refused(root, somebody_elses)
    cluster = Cluster(root, somebody_elses)
    cluster.connect().wait_for_workers(2, timeout=30)
    damaged = tiny_run(root)
    (damaged.folder / "spec.json").write_text("{}")
    run, other = (tiny_run(root, steps=ENDLESS) for _ in range(2))
    for each in (damaged, run, other):
        cluster.submit(each)
    for each in (run, other):
        wait_for_step(each, 5)
    assert {run.status().state, other.status().state} == {"training"}
    wait_until(lambda: damaged.name not in (cluster.queued() or ()), "the end of the damaged run")
    assert damaged.name not in (root.parent / LOG).read_text()
    stop(other)
    assert other.checkpoint() is not None
    wait_until(lambda: any((run.folder / "state").iterdir()), "a state")
    first = worker_of(run)
    first.kill()
    psutil.wait_procs([first], 30)
    goes_on(run)
    assert worker_of(run).pid != first.pid
    steps = [step for step, _ in run.metrics().losses()]
    assert steps == list(range(1, 1 + len(steps))), "no step is lost, and none made twice"
    stop(run)
    assert not cluster.was_left
    processes = len(processes_of(root))
    cluster.close()
    assert len(processes_of(root)) == processes, "somebody else's cluster is not ours to end"


def test_no_file_names_an_address_elsewhere(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "Client", lambda *_, **__: pytest.fail("nobody is asked"))
    root.mkdir()
    elsewhere = [f"{protocol}://192.0.2.1:8786" for protocol in ("tcp", "tls")]
    for address in (*elsewhere, "tcp://127.0.0.1:9", "inproc://1", "tls://127.0.0.1:9/x", 7):
        write_json(root / ".cluster.json", {"address": address, "id": "Scheduler-x"})
        assert Cluster(root)._connect_to_local() is None, address


def test_where_nobody_answers_is_one_sentence(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "ANSWER_WITHIN", 0.5)
    monkeypatch.setenv("DASK_ADDRESS", f"tcp://{NOBODY}")
    run, cluster = tiny_run(root), Cluster(root)
    cluster.start().join()
    with pytest.raises(RunError, match="No Dask scheduler answers at tcp://"):
        cluster.submit(run)
    assert run.name not in (cluster.queued() or ())
    cluster.close()
    assert run.status().state == "waiting"


def test_starting_waits_for_nobody_and_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[Cluster] = []
    go_on = threading.Event()

    def connect(self: Cluster) -> None:
        tries.append(self)
        go_on.wait(10)
        raise OSError("not yet")

    monkeypatch.setattr(Cluster, "connect", connect)
    cluster = Cluster(root)
    thread = cluster.start()
    assert thread.is_alive()
    assert thread.daemon
    assert cluster.start() is thread, "one that is on its way is not started twice"
    go_on.set()
    thread.join(10)
    cluster.start().join(10)
    assert len(tries) == 2


def test_what_does_not_answer_in_time_is_ended(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "START_WITHIN", 0.0)
    with pytest.raises(RunError, match=f"not be started. The cause: {SILENT}"):
        Cluster(root).connect()
    assert processes_of(root) == []
    assert not (root / ".cluster.json").exists()


def test_an_invalid_key_is_made_anew_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of an earlier version, made while the clock was ahead."""
    file, tomorrow = tmp_path / "key.pem", datetime.datetime.now() + datetime.timedelta(days=1)
    with monkeypatch.context() as patch:
        patch.setattr(cluster_key, "ALWAYS", tomorrow)
        security_of(file)
    keys = [file.read_bytes()]
    for _ in range(2):
        security_of(file)
        keys.append(file.read_bytes())
    assert keys[0] != keys[1] == keys[2]


def test_the_processes_work_in_a_folder_of_this_user_alone(tmp_path: Path) -> None:
    """They import what lies there; in /tmp another account could have made it before."""
    folder = private_folder(tmp_path / "runs" / ".dask")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o777)
    assert stat.S_IMODE(private_folder(folder).stat().st_mode) == 0o700
    elsewhere = tmp_path / "elsewhere"
    elsewhere.symlink_to(folder)
    with pytest.raises(PermissionError):
        private_folder(elsewhere)


NOTING = f"""
import logging, threading
from explorer.runs import cluster_processes

cluster_processes.dask_setup(None)
other = logging.getLogger("distributed.worker")
other.addHandler(logging.StreamHandler())
other.warning("Compute Failed: %s", {TEXT!r})
{MISHAPS}"""


def test_a_line_says_what_kind_of_thing_happened_and_where() -> None:
    """No text, and no run's name, which holds its link's key."""
    assert noted_by(NOTING) == [
        "WARNING distributed.worker: <string>.<module>, line 8",
        "ERROR distributed.worker: <string>.<module>, line 13, ValueError",
        "ERROR KeyError in end, line 15",
        "ERROR OSError in <module>, line 19",
    ]
