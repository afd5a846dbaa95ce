"""The app as a visitor meets it: `streamlit run app.py` in a process of its own.

Browser tests, benchmarks and the pictures start servers here. Every server gets
its own port and its own folder of runs, and that folder's path in the
environment is how every process that belongs to it is found again.
"""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from explorer.runs.run import Run
from tests.budget import spend

ROOT = Path(__file__).resolve().parent.parent


FIRST_PORT, PORTS, RANGES = 10_000, 500, 40
"""Below the ports that a system gives away by itself; each process of a run has its own."""

_asked = count()


def first_port() -> int:
    """Where the ports of this process begin; a process that only measures may not take others'."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
    place = int(worker) if worker.isdecimal() else os.getpid()
    return FIRST_PORT + PORTS * (place % RANGES)


def free_port() -> int:
    """A port nobody listens on, and no other server of this process was given lately."""
    for _ in range(PORTS):
        port = first_port() + next(_asked) % PORTS
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError(f"all ports from {first_port()} to {first_port() + PORTS - 1} are taken")


def wait_until(
    holds: Callable[[], bool], what: str | Callable[[], str], seconds: float = 90
) -> None:
    """Look again until it holds; AssertionError that says what did not come."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() >= end:
            missing = what if isinstance(what, str) else what()
            raise AssertionError(f"{missing} did not come within {seconds:g} s")
        time.sleep(0.02)


def processes_of(runs: Path) -> list[psutil.Process]:
    """Every living process that was started with this folder of runs."""
    found = []
    for process in psutil.process_iter():
        try:
            mine = process.environ().get("EXPLORER_RUNS") == str(runs)
            if mine and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def worker_of(run: Run) -> psutil.Process:
    """The process that trains this run: the one that has its lock open."""
    lock = str(run.folder / "lock")
    for process in processes_of(run.folder.parent):
        with contextlib.suppress(psutil.Error):
            if any(file.path == lock for file in process.open_files()):
                return process
    raise AssertionError(f"no process trains {run.name}")


class Server:
    """One running app; a context manager that leaves no process behind."""

    def __init__(
        self,
        runs: Path,
        *,
        script: Path = ROOT / "app.py",
        env: Mapping[str, str] | None = None,
        command: Sequence[str] = (),
        folder: Path = ROOT,
    ) -> None:
        self.runs = runs
        self.command = [*command] or [sys.executable, "-m", "streamlit", "run", str(script)]
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.extra = dict(env or {})
        self.log_path = runs.with_name(f"{runs.name}-server-{self.port}.log")
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        spend("server")
        command = [*self.command]
        command += ["--server.port", str(self.port), "--server.address", "127.0.0.1"]
        command += ["--server.headless", "true"]
        own = {"EXPLORER_RUNS": str(self.runs), "PYTHONUNBUFFERED": "1"}
        environment = {**os.environ, **self.extra, **own}
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, env=environment, cwd=self.folder
            )
        return self

    def wait(self, seconds: float = 90) -> Self:
        """Come back when the server answers that it is well."""
        wait_until(self._answers, f"the server at {self.url}", seconds)
        return self

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"the server ended at its start:\n{self.log}"
        try:
            with urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=5) as answer:
                return bool(answer.status == 200) and self._listens()
        except OSError:
            return False

    def _listens(self) -> bool:
        """Whether it is this server that answers, and not another that took the port first."""
        with contextlib.suppress(psutil.Error):
            known = psutil.Process(self.pid).net_connections("tcp")
            mine = [each.laddr.port for each in known if each.status == psutil.CONN_LISTEN]
            return self.port in mine
        return False

    @property
    def pid(self) -> int:
        assert self.process is not None, "the server was not started"
        return self.process.pid

    @property
    def log(self) -> str:
        """What the server has printed so far."""
        return self.log_path.read_text(errors="replace")

    @property
    def tracebacks(self) -> list[str]:
        """The part of the log after every printed stack: of an error, or of a warning."""
        return [
            self.log[match.start() : match.start() + 4000]
            for match in re.finditer(r"Traceback|Stack \(most recent", self.log)
        ]

    def stop(self, with_signal: int = signal.SIGINT) -> None:
        """Ask the server to end, as Ctrl-C does, and wait until it has."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(with_signal)
            self.process.wait(60)

    def kill(self) -> None:
        """End the server as a power cut would: it can tidy nothing."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(60)

    def leftovers(self) -> list[psutil.Process]:
        return processes_of(self.runs)

    def clear(self) -> None:
        """End whatever is left of this server and of its cluster."""
        if self.process is not None and self.process.poll() is None:
            self.kill()
        left = self.leftovers()
        for process in left:
            process.kill()
        psutil.wait_procs(left, 20)

    def __enter__(self) -> Self:
        return self.start().wait()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.stop()
        finally:
            self.clear()
