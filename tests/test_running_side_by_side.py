"""Processes that run the tests side by side keep out of each other's way, and leave nothing."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests import served, side_by_side
from tests.served import PORTS, Server, first_port, free_port


def locks() -> list[Path]:
    return list(Path(tempfile.gettempdir()).glob(f"{side_by_side.name_of('these')}-*"))


def test_the_locks_of_a_run_go_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_by_side, "RUN", "these")
    with side_by_side.held("machine", alone=True):
        assert len(locks()) == 1
    side_by_side.tidy("others")
    assert len(locks()) == 1
    side_by_side.tidy("these")
    assert not locks()


def test_two_processes_share_no_port(monkeypatch: pytest.MonkeyPatch) -> None:
    ranges = []
    for worker in ("gw0", "gw1"):
        monkeypatch.setenv("PYTEST_XDIST_WORKER", worker)
        assert first_port() <= free_port() < first_port() + PORTS
        ranges.append({*range(first_port(), first_port() + PORTS)})
    assert not ranges[0] & ranges[1]


def test_one_process_gives_no_port_twice() -> None:
    given = [free_port() for _ in range(50)]
    assert len({*given}) == len(given)


class Well(BaseHTTPRequestHandler):
    """Another app, which says that it is well."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing: a test prints nothing."""


def test_a_server_whose_port_another_took_is_not_taken_for_it(tmp_path: Path) -> None:
    other = HTTPServer(("127.0.0.1", 0), Well)
    answering = threading.Thread(target=other.serve_forever, daemon=True)
    answering.start()
    server = Server(tmp_path / "runs")
    server.port = other.server_port
    server.url = f"http://127.0.0.1:{server.port}"
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as starting:
        server.process = starting
        try:
            assert not server._answers()
        finally:
            starting.kill()
            other.shutdown()
            other.server_close()
    server.log_path.touch()
    with pytest.raises(AssertionError, match="ended at its start"):
        server._answers()


def test_a_port_that_is_taken_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    first = free_port()
    next_ones = [first - first_port(), first + 1 - first_port()]
    with HTTPServer(("127.0.0.1", first), Well):
        monkeypatch.setattr(served, "_asked", iter(next_ones))
        assert free_port() == first + 1
