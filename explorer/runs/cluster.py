"""The processes that train: a local Dask cluster, or any Dask cluster by its address.

With `DASK_ADDRESS` set, the runs train there; its workers must see the folder of runs under
the same path. Otherwise the first server that shows the training form starts a local
cluster and writes its address into a file in the folder of runs, where the next server finds
it: killing a server stops no run. Dask's own command starts the processes, since `LocalCluster`
would run the app's script again in each of them, and `SubprocessCluster` would pass on the
server's environment, with its secrets. They listen on 127.0.0.1 only, and require the key of
`cluster_key`: other accounts on this machine can send them no work.
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
from collections.abc import Callable, Container, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from dask.task_spec import Task
from distributed import Client, Future, fire_and_forget
from distributed.system import MEMORY_LIMIT

from explorer.catalog.folders import CLUSTER
from explorer.catalog.opened_model import OpenModel
from explorer.catalog.run_index import Maker, index_of, maker_in
from explorer.runs.cluster_key import client_security, private_folder, security_of
from explorer.runs.deleting import erase
from explorer.runs.finetuning import PARENT, new_head_seed
from explorer.runs.quotas import queue_fault
from explorer.runs.run import Run, create, delete, room_fault, run_named
from explorer.runs.spec import (
    ACTIVE,
    DAMAGED,
    INTERRUPTED,
    STOPPED,
    WAITING,
    RunError,
    RunNotes,
    RunSpec,
    Status,
)
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
"""Bytes to reserve for a worker; torch alone takes a third."""
PASSED_VARIABLES = (
    *("HOME", "TMPDIR", "OMP_NUM_THREADS", "EXPLORER_RUNS", "EXPLORER_CLUSTER_UNUSED_SECONDS"),
    *(limits.PUBLIC, limits.FILE),
)
"""Variables of the server's environment that the processes get, besides the limits set there."""
NOT_STARTED = "The processes that train could not be started. The cause: {cause}."
ENDED, SILENT = "the scheduler ended at once", "the scheduler has not answered in time"
OTHERS_START = (
    "Another server has been starting the training cluster for a minute; try again later."
)
LOCAL = re.compile(r"tls://127\.0\.0\.1:\d{1,5}")
"""The only addresses that are trusted from a file; any other is set in DASK_ADDRESS."""
PRELOAD = "explorer.runs.cluster_processes"
BEHIND_ALL = 1_000_000
"""More places than any queue has."""
KEY = re.compile(r"train/[^/]+/[0-9a-f]{32}")
"""The key of a task that trains a run, with the run's name."""


class Cluster:
    """The cluster that trains the runs under `root`. One per server; any thread may use it."""

    def __init__(self, root: Path, address: str | None = None) -> None:
        self.root = Path(root).absolute()
        self.dask_address = address or os.environ.get("DASK_ADDRESS") or None
        self._file = self.root / CLUSTER
        self._key = self.root / ".cluster.pem"
        self._guard = threading.RLock()
        self._starting = threading.Lock()
        self._starter: threading.Thread | None = None
        self._client: Client | None = None
        self._started: list[subprocess.Popen[bytes]] = []
        self._is_closed = False
        self._has_tried = False

    def start(self) -> threading.Thread:
        """Connect or start in a thread, unless it is up or starting.

        A fault is raised when a run is submitted.
        """
        with self._starting:
            if self._starter is None or not (self._starter.is_alive() or self._open_client()):
                self._starter = threading.Thread(target=self._try_to_connect, daemon=True)
                self._starter.start()
            return self._starter

    def connect(self) -> Client:
        """The open connection, or a new one to a cluster that runs or is started now."""
        with self._guard:
            if self._is_closed:
                raise RunError("This server is shutting down, so it cannot start a training run.")
            if self._client is None or self._client.status != "running":
                self._drop_client()
                try:
                    self._client = self._connect_to_dask_address() or self._connect_or_start()
                finally:
                    self._has_tried = True
            return self._client

    def train_all(
        self,
        specs: Sequence[RunSpec],
        text: str | None,
        whose: Maker,
        notes: RunNotes | None = None,
        tokenizer: str | None = None,
        parent: OpenModel | None = None,
    ) -> list[Run]:
        """Create these runs and queue them in their order.

        The weights of the model that they start from are on the disk once, and linked in each run.
        RunError, and no run, if the queue or the disk has no place for all.
        """
        client, runs = self.connect(), list[Run]()
        with self._queue(client) as queued:
            places = self._places(queued, whose, len(specs))
            if fault := room_fault(self.root, specs, whose.owner or "", whose.network):
                raise RunError(fault)
            try:
                owner, network = whose.owner or "", whose.network
                parents = dict[int | None, Path]()
                for spec in specs:
                    seed = new_head_seed(parent, spec) if parent else None
                    start = parents.get(seed, parent)
                    runs.append(
                        create(self.root, spec, text, owner, network, notes, tokenizer, start)
                    )
                    if parent:
                        parents.setdefault(seed, runs[-1].folder / PARENT)
            except RunError:
                for run in runs:
                    erase(run.folder)
                raise
            _send(client, list(zip(runs, places, strict=True)))
        return runs

    def submit(self, run: Run) -> None:
        """Queue the run for the next free worker. RunError if the queue has no place for it."""
        client = self.connect()
        with self._queue(client) as queued:
            copies = queued.pop(run.name, 0)
            if copies <= 1:  # one may be about to end, and the next waits for its lock
                _send(client, [(run, self._places(queued, maker_in(run.folder))[0])])

    def stop(self, run: Run) -> None:
        """Stop the run; at once if it only waits."""
        run.command("stop")
        if self.cancel(run) or not run.has_worker():  # or it waits for its turn in a race
            run.mark(STOPPED)

    def delete(self, run: Run) -> None:
        """Delete the run, and its place in the queue."""
        delete(run)
        self.cancel(run)

    def cancel(self, run: Run) -> bool:
        """Remove a run that waits for a worker from the queue; returns whether it was there.

        A run that has a worker keeps its place until it has stopped.
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
        """Whether an earlier server, perhaps a killed one, has left its processes running here."""
        return self._file.exists()

    def queued(self) -> list[str] | None:
        """The names of the runs that train or wait; None before the first try to find the others.

        A cluster that does not answer has none.
        """
        if not self._has_tried and (self.was_left or self.dask_address):
            self.start()
            return None
        client = self._open_client()
        try:
            return [] if client is None else [*map(_name_of, _keys(client))]
        except OSError:
            return []

    def waiting(self) -> list[str]:
        """The names of the runs that wait for a worker, the next one first."""
        names = dict.fromkeys(self.queued() or ())
        # A scheduler that is not ours sends runs to busy workers, where they wait as well.
        return [name for name in names if not is_held(self.root / name / "lock")]

    def close(self) -> None:
        """Disconnect. The last server of a local cluster ends the cluster's processes, after the
        workers have saved the state of their runs.
        """
        with self._guard:
            self._is_closed = True
            if self._client is not None and not self.dask_address:
                with contextlib.suppress(OSError):
                    if _ask(self._client, _count_clients()) <= 1:
                        self._end_processes(self._client)
            self._drop_client()

    @contextlib.contextmanager
    def _queue(self, client: Client) -> Iterator[Counter[str]]:
        """The number of times each run is in the queue; no other server can change it meanwhile."""
        with _lock(self.root / ".queue.lock", "Others are starting runs; try again."):
            yield Counter(map(_name_of, _keys(client)))

    def _places(self, queued: Counter[str], whose: Maker, more: int = 1) -> list[int]:
        """The places of `more` new runs: everybody's first run comes before anybody's second.

        Among equals, the first run of a network comes before the second of another.
        """
        by_name = index_of(self.root).now().by_name
        there = [by_name[name] for name in queued if name in by_name]
        mine = sum(1 for run in there if run.owner == whose.owner)
        if fault := queue_fault(mine, len(queued), there, whose.network, more):
            raise RunError(fault)
        near = sum(1 for run in there if whose.network and run.network == whose.network)
        return [(mine + at) * BEHIND_ALL + near + at for at in range(more)]

    def _try_to_connect(self) -> None:
        with contextlib.suppress(OSError, RunError):
            self.connect()

    def _connect_to_dask_address(self) -> Client | None:
        if not self.dask_address:
            return None
        try:
            return Client(self.dask_address, timeout=ANSWER_WITHIN, set_as_default=False)
        except (OSError, ValueError) as error:
            raise RunError(
                f"No Dask scheduler answers at {self.dask_address[:100]}, "
                "the address in DASK_ADDRESS."
            ) from error

    def _connect_or_start(self) -> Client:
        with _lock(self.root / ".cluster.lock", OTHERS_START):
            try:
                return self._connect_to_local() or self._start_processes()
            except OSError as error:  # leave no process that nobody would find again
                self._kill_processes()
                raise RunError(NOT_STARTED.format(cause=_cause_of(error))) from error

    def _connect_to_local(self) -> Client | None:
        try:
            scheduler = read_json_object(self._file)
            if not LOCAL.fullmatch(str(scheduler["address"])):
                return None
            client = self._client_of(str(scheduler["address"]), ANSWER_WITHIN)
        except (OSError, ValueError, KeyError):
            return None
        if client.scheduler_info().get("id") == scheduler.get("id"):
            return client
        client.close()
        return None

    def _start_processes(self) -> Client:
        security = security_of(self._key)
        # The processes import from their work folder: in /tmp any account could write into it.
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
            "scheduler_file": str(file),  # they wait for it, so all start at once
            "nthreads": 1,
            "memory_limit": 1.0 / workers,
            "preload": [PRELOAD],
            "preload_nanny": [PRELOAD],
        }
        for _ in range(workers):
            self._spawn("distributed.Nanny", common | worker, work)
        address_and_id = self._wait_for_scheduler(file, of_scheduler)
        client = self._client_of(address_and_id["address"], timeout=START_WITHIN)
        write_json(self._file, address_and_id)
        return client

    def _spawn(self, kind: str, options: dict[str, Any], work: Path) -> subprocess.Popen[bytes]:
        limits_set = (name for name in os.environ if name.startswith(limits.PREFIX))
        spec = json.dumps({"cls": kind, "opts": options})
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", "spec", "--spec", spec],
            stdin=subprocess.DEVNULL,
            umask=0o077,  # only this user can read Dask's files
            creationflags=operating_system.OWN_GROUP,
            start_new_session=True,  # Ctrl-C reaches the server, which first has the runs saved
            env=child_environment(*PASSED_VARIABLES, *limits_set)
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
        """Its address and its ID, once it has written them; TimeoutError if it does not."""
        end = time.monotonic() + START_WITHIN
        while process.poll() is None and time.monotonic() < end:
            with contextlib.suppress(OSError, ValueError):
                scheduler = read_json_object(file)
                return {name: str(scheduler[name]) for name in ("address", "id")}
            time.sleep(0.05)
        raise TimeoutError(SILENT if process.poll() is None else ENDED)

    def _kill_processes(self) -> None:
        """End the processes that this server has started, with their child processes."""
        while self._started:
            process = self._started.pop()
            if process.poll() is None:
                operating_system.end_group(process, at_once=True)
                process.wait()

    def _client_of(self, address: str, timeout: float) -> Client:
        security = client_security(self._key)
        return Client(address, timeout=timeout, security=security, set_as_default=False)

    def _end_processes(self, client: Client) -> None:
        self._file.unlink(missing_ok=True)
        for name in map(_name_of, _keys(client)):
            with contextlib.suppress(RunError, OSError):
                run_named(self.root, name).command("leave")
        end = time.monotonic() + LEAVE_WITHIN  # the workers save the state of their runs
        while _keys(client) and time.monotonic() < end:
            time.sleep(0.02)
        client.shutdown()
        self._drop_client()
        self._kill_processes()

    def _open_client(self) -> Client | None:
        client = self._client  # read once: another thread may drop it
        return client if client is not None and client.status == "running" else None

    def _drop_client(self) -> None:
        if self._client is not None:
            with contextlib.suppress(OSError, TimeoutError):
                self._client.close(timeout=2)
            self._client = None


def _cause_of(error: BaseException) -> str:
    """What it began with, without a path of this machine."""
    while cause := error.__cause__ or error.__context__:
        error = cause
    words = getattr(error, "verify_message", "") or getattr(error, "strerror", "")
    return words or (str(error) if len(error.args) == 1 else "") or type(error).__name__


def workers_here() -> int:
    """The number of workers: one for each core but the server's, if the memory is enough."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min((cores or 1) - 1, MEMORY_LIMIT // MEMORY_OF_WORKER))


def cluster() -> Cluster:
    """The cluster of this server."""
    return _cluster_of(runs_root())


@cache
def _cluster_of(root: Path) -> Cluster:
    return Cluster(root)


Queued = Callable[[], Container[str] | None]


def status_of(run: Run, queued: Queued | None = None) -> Status:
    """The status of a run, for every page: interrupted where no process trains it or will.

    `queued` asks the cluster once for many runs. RunError if the run cannot be read.
    """
    status = run.status()
    if status.state == WAITING and not run.has_worker():
        there = (queued or cluster().queued)()
        if there is not None and run.name not in there:
            status = run.status()  # read again: it may have been trained meanwhile
            if status.state == WAITING and not run.has_worker():
                return status.replace(state=INTERRUPTED)
    return status


def states_of(runs: Sequence[Run]) -> tuple[str, ...]:
    """The state of each run, for every page; `DAMAGED` for one that cannot be read."""
    queued, states = cache(cluster().queued), list[str]()
    for run in runs:
        state = DAMAGED
        if run.is_readable():
            with contextlib.suppress(RunError):
                state = status_of(run, queued).state
        states.append(state)
    return tuple(states)


def is_active(run: Run) -> bool:
    """Whether a process trains the run or will."""
    return states_of([run])[0] in ACTIVE


@contextlib.contextmanager
def _lock(path: Path, sentence: str) -> Iterator[None]:
    """Hold a lock between servers. RunError with this sentence if it is not free for a minute."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = Lock(path)
    if not lock.acquire(patience=60):
        raise RunError(sentence)
    with lock:
        yield


def _ask(client: Client, question: Callable[[Any], Any]) -> Any:
    """The answer of `run_on_scheduler`, which by itself would wait for ever."""
    return client.sync(client._run_on_scheduler, question, callback_timeout=ANSWER_WITHIN)


def _keys(client: Client) -> list[str]:
    """The keys of the tasks that train or wait, the next one first."""
    ended = ("memory", "erred", "forgotten", "released")

    def by_priority(dask_scheduler: Any) -> list[str]:  # a closure, see below
        tasks = [task for task in dask_scheduler.tasks.values() if task.state not in ended]
        return [str(task.key) for task in sorted(tasks, key=lambda task: task.priority)]

    return [key for key in _ask(client, by_priority) if KEY.fullmatch(key)]


def _send(client: Client, runs: Sequence[tuple[Run, int]]) -> None:
    """Queue each run at its place, and wait until all have arrived.

    A task that is marked as a producer of data waits at the scheduler until a worker is free. Dask
    would send others to a worker at once, where a run would wait for another, and be lost with it.

    A run that does not arrive in time is not lost: it trains once the scheduler answers again.

    Without this wait, the page would be drawn before the sending thread has its turn, and the next
    reader of the queue would not see the runs.

    Several runs take turns, but not on a public server, where others wait for their first run.
    """
    race = [] if len(runs) == 1 or limits.is_public() else [str(run.folder) for run, _ in runs]
    futures, entry = dict[str, Future](), _entry(str(ROOT), settings())
    for run, place in runs:
        key = f"train/{run.name}/{uuid.uuid4().hex}"
        task = Task(key, entry, str(run.folder), race, _data_producer=True)
        futures[key] = client.get({key: task}, key, sync=False, priority=-place)
        fire_and_forget(futures[key])
    end = time.monotonic() + ANSWER_WITHIN
    while futures and time.monotonic() < end:
        time.sleep(0.002)
        with contextlib.suppress(OSError):  # the runs arrive when the scheduler answers again
            arrived = _keys(client)
            futures = {
                key: future
                for key, future in futures.items()
                if key not in arrived and not future.done()
            }


def _name_of(key: str) -> str:
    return key.split("/")[1]


# Other processes get closures: Dask copies them whole, so a worker needs no path to this project
# before it runs one.


def _entry(root: str, environment: dict[str, str]) -> Callable[[str, list[str]], str]:
    def train(folder: str, race: list[str]) -> str:
        import os
        import sys

        os.environ.update(environment)
        if root not in sys.path:
            sys.path.insert(0, root)
        from explorer.runs.spec import RunError
        from explorer.runs.worker import train_to_end

        try:
            return train_to_end(folder, race)
        except RunError:  # the run's status has the error, which no log of Dask's may have
            return "failed"

    return train


def _cancel_waiting(prefix: str) -> Callable[[Any], list[str]]:
    def cancel(dask_scheduler: Any) -> list[str]:
        """All at once, so that none of them gets a worker meanwhile."""
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
