"""The processes that train are started once, and nobody waits for it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from explorer.runs.cluster import Cluster


def test_starting_keeps_nobody_waiting(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connecting, go_on = threading.Event(), threading.Event()

    def connect(self: Cluster) -> None:
        connecting.set()
        go_on.wait(10)

    monkeypatch.setattr(Cluster, "connect", connect)
    thread = Cluster(root).start()
    assert connecting.wait(10)
    assert thread.is_alive()
    assert thread.daemon
    go_on.set()
    thread.join(10)


def test_starting_again_after_a_failure_tries_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[Cluster] = []

    def fail(self: Cluster) -> None:
        tries.append(self)
        raise OSError("not yet")

    monkeypatch.setattr(Cluster, "connect", fail)
    cluster = Cluster(root)
    cluster.start().join(10)
    cluster.start().join(10)
    assert len(tries) == 2


def test_what_a_server_leaves_is_known_before_anything_is_started(root: Path) -> None:
    assert not Cluster(root).was_left
    cluster = Cluster(root)
    begun = cluster.start()
    assert cluster.start() is begun, "one that is on its way is not started twice"
    begun.join()
    assert Cluster(root).was_left
    cluster.close()
    assert not Cluster(root).was_left
