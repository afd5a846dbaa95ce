"""The processes that train: a local Dask cluster, or any Dask cluster by its address.

With `DASK_ADDRESS` set the runs train there; its workers must see the folder of runs under
the same path. Otherwise the first server that shows the training form starts a local
cluster and leaves its address in a file of the folder of runs, where the next server finds
it: killing a server stops no run. The processes are started by Dask's own command, since
`LocalCluster` would run the app's script again in each of them, and `SubprocessCluster` would
hand them the server's environment, with its secrets. They listen on 127.0.0.1 only, and to
nobody who does not show the key of `cluster_key`: other accounts of this machine can send them
no work.
"""

import contextlib
import json
import os
import re
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from dask.task_spec import Task
from distributed import Client, Future, fire_and_forget
from distributed.system import MEMORY_LIMIT

from explorer.catalog.folders import CLUSTER
from explorer.catalog.opened_model import OpenModel
from explorer.catalog.run_index import Maker, index_of, maker_in
from explorer.runs.cluster_key import found_security, private_folder, security_of
from explorer.runs.deleting import erase
from explorer.runs.finetuning import PARENT, new_head_seed
from explorer.runs.quotas import queue_fault
from explorer.runs.run import Run, create, delete, room_fault, run_named
from explorer.runs.spec import STOPPED, RunError, RunNotes, RunSpec
from explorer.runs.watchdog import settings
from explorer.system import limits, operating_system
from explorer.system.atomic_files import Lock, is_held, read_json_object, write_json
from explorer.system.data_folders import runs_root
from explorer.system.operating_system import child_environment

ROOT = Path(__file__).resolve().parent.parent.parent
ANSWER_WITHIN = 5.0
START_WITHIN = 30.0
LEAVE_WITHIN = 5.0
MEMORY_OF_WORKER = 1 << 30
"""Bytes that a worker is counted for; torch alone takes a third."""
PASSED_ON = (
    *("HOME", "TMPDIR", "OMP_NUM_THREADS", "EXPLORER_RUNS", "EXPLORER_CLUSTER_UNUSED_SECONDS"),
    *(limits.PUBLIC, limits.FILE),
)
"""What the processes get of the server's environment, besides the limits that are set there."""
NOT_STARTED = "The processes that train could not be started; try again in a minute."
OTHERS_START = (
    "Another server has been starting the training cluster for a minute; try again later."
)
LOCAL = re.compile(r"tls://127\.0\.0\.1:\d{1,5}")
"""The only addresses that are believed from a file; any other is given in DASK_ADDRESS."""
PRELOAD = "explorer.runs.cluster_processes"
BEHIND_ALL = 1_000_000
"""Places; no queue is longer."""
KEY = re.compile(r"train/[^/]+/[0-9a-f]{32}")
"""A task that trains the run of this name."""


class Cluster:
    """Where the runs under `root` are trained. One per server; any thread may use it."""

    def __init__(self, root: Path, address: str | None = None) -> None:
        self.root = Path(root).absolute()
        self.given_address = address or os.environ.get("DASK_ADDRESS") or None
        self._file = self.root / CLUSTER
        self._key = self.root / ".cluster.pem"
        self._guard = threading.RLock()
        self._starting = threading.Lock()
        self._starter: threading.Thread | None = None
        self._client: Client | None = None
        self._started: list[subprocess.Popen[bytes]] = []
        self._is_closed = False

    def start(self) -> threading.Thread:
        """Attach or start in a thread; a fault is raised when a run is submitted.

        Does nothing where it is up or starting.
        """
        with self._starting:
            if self._starter is None or not (self._starter.is_alive() or self.is_up):
                self._starter = threading.Thread(target=self._try_to_connect, daemon=True)
                self._starter.start()
            return self._starter

    def connect(self) -> Client:
        """The open connection, or a new one to a cluster that is found or started."""
        with self._guard:
            if self._is_closed:
                raise RunError("This server is shutting down, so it cannot start a training run.")
            if self._client is None or self._client.status != "running":
                self._drop_client()
                self._client = self._attach_to_given() or self._attach_or_start()
            return self._client

    def train_new(
        self,
        spec: RunSpec,
        text: str | None,
        owner: str,
        network: str = "",
        tokenizer: str | None = None,
        parent: OpenModel | None = None,
    ) -> Run:
        """Make a run and queue it. RunError, and no run, where the queue has no place for it."""
        return self.train_all(
            [spec], text, Maker(owner, network), tokenizer=tokenizer, parent=parent
        )[0]

    def train_all(
        self,
        specs: Sequence[RunSpec],
        text: str | None,
        whose: Maker,
        notes: RunNotes | None = None,
        tokenizer: str | None = None,
        parent: OpenModel | None = None,
    ) -> list[Run]:
        """Make these runs and queue them in their order.

        The weights of the model that they start from are on the disk once, and linked in each.
        RunError, and none of them, where the queue or the disk has no place for all.
        """
        client, made = self.connect(), list[Run]()
        with self._queue(client) as queued:
            places = self._places(queued, whose, len(specs))
            if fault := room_fault(self.root, specs, whose.owner or "", whose.network):
                raise RunError(fault)
            try:
                owner, network = whose.owner or "", whose.network
                begun = dict[int | None, Path]()
                for spec in specs:
                    seed = new_head_seed(parent, spec) if parent else None
                    start = begun.get(seed, parent)
                    made.append(
                        create(self.root, spec, text, owner, network, notes, tokenizer, start)
                    )
                    if parent:
                        begun.setdefault(seed, made[-1].folder / PARENT)
            except RunError:
                for run in made:
                    erase(run.folder)
                raise
            _send(client, list(zip(made, places, strict=True)))
        return made

    def submit(self, run: Run) -> None:
        """Queue the run for the next free worker, whether or not anybody watches it.

        RunError where the queue has no place for it.
        """
        client = self.connect()
        with self._queue(client) as queued:
            again = queued.pop(run.name, 0)
            if again <= 1:  # one may be about to end, and another that waits for it goes on
                _send(client, [(run, self._places(queued, maker_in(run.folder))[0])])

    def stop(self, run: Run) -> None:
        """Stop the run: at once where it only waits."""
        run.command("stop")
        if self.cancel(run):
            run.mark(STOPPED)

    def delete(self, run: Run) -> None:
        """Delete the run, and its place in the queue."""
        delete(run)
        self.cancel(run)

    def cancel(self, run: Run) -> bool:
        """Give up the place of a run that waits for a worker, and say whether it had one.

        One that has a worker is told to stop, and keeps its place until it has.
        """
        client = self._open_client()
        if client is None:
            return False
        try:
            keys = _ask(client, _cancel_waiting(f"train/{run.name}/"))
        except OSError:
            return False
        return bool(keys)

    @property
    def was_left(self) -> bool:
        """Whether a server, perhaps one that was killed, has left its processes here."""
        return self._file.exists()

    @property
    def is_up(self) -> bool:
        """Whether it is connected, so that questions are answered at once."""
        return self._open_client() is not None

    def has(self, run: Run) -> bool:
        """Whether a worker trains the run or will. A cluster that is not up has none."""
        if run.has_worker():
            return True
        client = self._open_client()
        try:
            return client is not None and run.name in map(_name_of, _keys(client))
        except OSError:
            return False

    def waiting(self) -> list[str]:
        """The names of the runs that wait for a worker, the next one first."""
        client = self._open_client()
        try:
            keys = [] if client is None else _ask(client, _list_waiting())
        except OSError:
            return []
        names = [_name_of(key) for key in keys if KEY.fullmatch(key)]
        # A scheduler that is not ours deals out runs to busy workers, where they wait as well.
        return [name for name in dict.fromkeys(names) if not is_held(self.root / name / "lock")]

    @property
    def address(self) -> str:
        """Where the scheduler listens."""
        return str(self.connect().scheduler_info()["address"])

    def close(self) -> None:
        """Disconnect. The last server that uses a local cluster ends its processes, after its
        workers have saved the state of their runs.
        """
        with self._guard:
            self._is_closed = True
            if self._client is not None and not self.given_address:
                with contextlib.suppress(OSError):
                    if _ask(self._client, _count_clients()) <= 1:
                        self._end_processes(self._client)
            self._drop_client()

    @contextlib.contextmanager
    def _queue(self, client: Client) -> Iterator[Counter[str]]:
        """How often each run is in the queue, which no other server changes in here."""
        with _locked(self.root / ".queue.lock", "Others are starting runs; try again."):
            yield Counter(map(_name_of, _keys(client)))

    def _places(self, queued: Counter[str], whose: Maker, more: int = 1) -> list[int]:
        """How far back each of so many new runs waits: everybody's first comes before any second.

        Among those of as many, the first of a network comes before any second of another.
        """
        known = index_of(self.root).now().by_name
        there = [known[name] for name in queued if name in known]
        mine = sum(1 for run in there if run.owner == whose.owner)
        if fault := queue_fault(mine, len(queued), there, whose.network, more):
            raise RunError(fault)
        near = sum(1 for run in there if whose.network and run.network == whose.network)
        return [(mine + at) * BEHIND_ALL + near + at for at in range(more)]

    def _try_to_connect(self) -> None:
        with contextlib.suppress(OSError, RunError):
            self.connect()

    def _attach_to_given(self) -> Client | None:
        if not self.given_address:
            return None
        try:
            return Client(self.given_address, timeout=ANSWER_WITHIN, set_as_default=False)
        except (OSError, ValueError) as error:
            raise RunError(
                f"No Dask scheduler answers at {self.given_address[:100]}, "
                "the address in DASK_ADDRESS."
            ) from error

    def _attach_or_start(self) -> Client:
        with _locked(self.root / ".cluster.lock", OTHERS_START):
            return self._attach_to_found() or self._start()

    def _attach_to_found(self) -> Client | None:
        try:
            found = read_json_object(self._file)
            if not LOCAL.fullmatch(str(found["address"])):
                return None
            client = self._client_of(str(found["address"]), ANSWER_WITHIN)
        except (OSError, ValueError, KeyError):
            return None
        if client.scheduler_info().get("id") == found.get("id"):
            return client
        client.close()
        return None

    def _start(self) -> Client:
        try:
            return self._started_client()
        except OSError as error:  # no process is left that nobody would find again
            self._kill_started()
            raise RunError(NOT_STARTED) from error

    def _started_client(self) -> Client:
        security = security_of(self._key)
        # The processes import what lies in their work folder, which would be in /tmp, for all.
        work = private_folder(self.root / ".dask")
        file = work / f"{uuid.uuid4()}.json"
        common = {"host": "127.0.0.1", "security": security}
        scheduler = {
            "protocol": "tls://",
            "port": 0,
            "dashboard": False,
            "dashboard_address": "127.0.0.1:0",  # closed at once by the preload
            "scheduler_file": str(file),
            "preload": [PRELOAD],
        }
        of_scheduler = self._spawn("distributed.Scheduler", common | scheduler, work)
        workers = workers_here()
        worker = {
            "scheduler_file": str(file),  # which they wait for: all start at once
            "nthreads": 1,
            "memory_limit": 1.0 / workers,
            "preload": [PRELOAD],
            "preload_nanny": [PRELOAD],
        }
        for _ in range(workers):
            self._spawn("distributed.Nanny", common | worker, work)
        found = self._wait_for_scheduler(file, of_scheduler)
        client = self._client_of(found["address"], timeout=START_WITHIN)
        write_json(self._file, found)
        return client

    def _spawn(self, kind: str, options: dict[str, Any], work: Path) -> subprocess.Popen[bytes]:
        limits_set = (name for name in os.environ if name.startswith(limits.PREFIX))
        spec = json.dumps({"cls": kind, "opts": options})
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", "spec", "--spec", spec],
            stdin=subprocess.DEVNULL,
            umask=0o077,  # what Dask notes of its work is this user's alone
            creationflags=operating_system.OWN_GROUP,
            start_new_session=True,  # Ctrl-C is the server's, which has the runs saved first
            env=child_environment(*PASSED_ON, *limits_set)
            | {
                "DASK_LOGGING__DISTRIBUTED": "error",
                "DASK_DISTRIBUTED__SCHEDULER__WORKER_SATURATION": "1.0",
                "DASK_TEMPORARY_DIRECTORY": str(work),
                "PYTHONPATH": str(ROOT),
            },
        )
        self._started.append(process)
        return process

    def _wait_for_scheduler(self, file: Path, process: subprocess.Popen[bytes]) -> dict[str, str]:
        """Its address and its id, once it has written them; TimeoutError where it never does."""
        end = time.monotonic() + START_WITHIN
        while process.poll() is None and time.monotonic() < end:
            with contextlib.suppress(OSError, ValueError):
                said = read_json_object(file)
                return {name: str(said[name]) for name in ("address", "id")}
            time.sleep(0.05)
        raise TimeoutError

    def _kill_started(self) -> None:
        """End the processes that this server has started, and those that they have."""
        while self._started:
            process = self._started.pop()
            if process.poll() is None:
                operating_system.end_group(process, at_once=True)
                process.wait()

    def _client_of(self, address: str, timeout: float) -> Client:
        security = found_security(self._key)
        return Client(address, timeout=timeout, security=security, set_as_default=False)

    def _end_processes(self, client: Client) -> None:
        self._file.unlink(missing_ok=True)
        self._ask_runs_to_leave(client)
        client.shutdown()
        self._drop_client()
        self._kill_started()

    def _ask_runs_to_leave(self, client: Client) -> None:
        """Give the workers a moment to save the state of their runs."""
        for name in map(_name_of, _keys(client)):
            with contextlib.suppress(RunError, OSError):
                run_named(self.root, name).command("leave")
        end = time.monotonic() + LEAVE_WITHIN
        while _keys(client) and time.monotonic() < end:
            time.sleep(0.02)

    def _open_client(self) -> Client | None:
        client = self._client  # read once: another thread may drop it
        return client if client is not None and client.status == "running" else None

    def _drop_client(self) -> None:
        if self._client is not None:
            with contextlib.suppress(OSError, TimeoutError):
                self._client.close(timeout=2)
            self._client = None


def workers_here() -> int:
    """One for each core but the server's, as far as the memory of the machine goes round."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min((cores or 1) - 1, MEMORY_LIMIT // MEMORY_OF_WORKER))


def cluster() -> Cluster:
    """The cluster of this server."""
    return _cluster_of(runs_root())


@cache
def _cluster_of(root: Path) -> Cluster:
    return Cluster(root)


@contextlib.contextmanager
def _locked(path: Path, sentence: str) -> Iterator[None]:
    """A lock between servers, and what is said to whom it does not become free for a minute."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = Lock(path)
    if not lock.acquire(patience=60):
        raise RunError(sentence)
    with lock:
        yield


def _ask(client: Client, question: Callable[[Any], Any]) -> Any:
    """The answer of `run_on_scheduler`, which would wait for ever without an answer."""
    return client.sync(client._run_on_scheduler, question, callback_timeout=ANSWER_WITHIN)


def _keys(client: Client) -> list[str]:
    """The keys of what the cluster trains or will train."""
    return [key for key in _ask(client, _list_keys()) if KEY.fullmatch(key)]


def _send(client: Client, runs: Sequence[tuple[Run, int]]) -> None:
    """Queue each run, whose place says how far back it waits, and wait until all have arrived.

    Marked as a producer of data a task waits at the scheduler until a worker is free. Dask deals
    out others at once: a run would wait for one that is dealt to the same worker, and be lost
    with it.

    A run that has not in time is left to itself: it trains once the scheduler answers again.

    Without this wait the thread that sends them would have none of the processor before the
    page is drawn, and the next question to the queue would not know of them.
    """
    sent, entry = dict[str, Future](), _entry(str(ROOT), settings())
    for run, place in runs:
        key = f"train/{run.name}/{uuid.uuid4().hex}"
        task = Task(key, entry, str(run.folder), _data_producer=True)
        sent[key] = client.get({key: task}, key, sync=False, priority=-place)
        fire_and_forget(sent[key])
    end = time.monotonic() + ANSWER_WITHIN
    while sent and time.monotonic() < end:
        time.sleep(0.002)
        with contextlib.suppress(OSError):  # what was sent arrives when it answers again
            arrived = _keys(client)
            sent = {
                key: each for key, each in sent.items() if key not in arrived and not each.done()
            }


def _name_of(key: str) -> str:
    return key.split("/")[1]


# What is sent to other processes are closures: Dask copies those whole, so a
# worker needs no path to this project before it runs one.


def _entry(root: str, environment: dict[str, str]) -> Callable[[str], str]:
    def train(folder: str) -> str:
        import os
        import sys

        os.environ.update(environment)
        if root not in sys.path:
            sys.path.insert(0, root)
        from explorer.runs.spec import RunError
        from explorer.runs.worker import train_to_end

        try:
            return train_to_end(folder)
        except RunError:  # which the run's status says, and no log of Dask's
            return "failed"

    return train


def _list_keys() -> Callable[[Any], list[str]]:
    ended = ("memory", "erred", "forgotten", "released")
    return lambda dask_scheduler: [
        str(key) for key, task in dask_scheduler.tasks.items() if task.state not in ended
    ]


def _list_waiting() -> Callable[[Any], list[str]]:
    waiting = ("queued", "no-worker", "processing")

    def by_priority(dask_scheduler: Any) -> list[str]:
        tasks = [task for task in dask_scheduler.tasks.values() if task.state in waiting]
        return [str(task.key) for task in sorted(tasks, key=lambda task: task.priority)]

    return by_priority


def _cancel_waiting(prefix: str) -> Callable[[Any], list[str]]:
    def cancel(dask_scheduler: Any) -> list[str]:
        """In one go, so that none of them gets a worker meanwhile."""
        keys = [
            key
            for key, task in dask_scheduler.tasks.items()
            if str(key).startswith(prefix) and task.state in ("queued", "no-worker")
        ]
        for key in keys:
            for client in list(dask_scheduler.tasks[key].who_wants):
                dask_scheduler.client_releases_keys(keys=[key], client=client.client_key)
        dask_scheduler.report({"op": "cancelled-keys", "keys": keys})
        return keys

    return cancel


def _count_clients() -> Callable[[Any], int]:
    return lambda dask_scheduler: sum(
        1 for name in dask_scheduler.clients if str(name).startswith("Client-")
    )
