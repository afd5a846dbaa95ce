"""Servers of tests that run side by side keep out of each other's way."""

from __future__ import annotations

import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests import served
from tests.served import PORTS, Server, first_port, free_port


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
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as starting:
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


def test_two_processes_share_no_port_and_one_gives_none_twice_or_that_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ranges = []
    for worker in ("gw0", "gw1"):
        monkeypatch.setenv("PYTEST_XDIST_WORKER", worker)
        given = [free_port() for _ in range(25)]
        assert len({*given}) == len(given)
        ranges.append({*range(first_port(), first_port() + PORTS)})
        assert {*given} <= ranges[-1]
    assert not ranges[0] & ranges[1]
    monkeypatch.delenv("PYTEST_XDIST_WORKER")
    first = free_port()
    at = first - first_port()
    with HTTPServer(("127.0.0.1", first), Well):
        monkeypatch.setattr(served, "_asked", iter([at, at + 1]))
        assert free_port() == first + 1
