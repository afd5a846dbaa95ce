"""Servers of tests that run side by side keep out of each other's way."""

import socket

import pytest

from tests import served
from tests.served import PORTS, first_port, free_port


def test_processes_share_no_port_and_none_is_given_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    ranges = []
    for worker in ("gw0", "gw1"):
        monkeypatch.setenv("PYTEST_XDIST_WORKER", worker)
        given = [free_port() for _ in range(25)]
        assert len({*given}) == len(given)
        ranges.append({*range(first_port(), first_port() + PORTS)})
        assert {*given} <= ranges[-1]
    assert not ranges[0] & ranges[1]
    monkeypatch.delenv("PYTEST_XDIST_WORKER")
    taken = free_port()
    with socket.socket() as other:
        other.bind(("127.0.0.1", taken))
        monkeypatch.setattr(served, "_asked", iter(range(taken - first_port(), PORTS)))
        assert free_port() > taken
