"""Loaded by the local cluster's scheduler: whose turn it is, and an unused cluster ends itself.

When a server is killed its cluster goes on, so that the next server finds it and no run is
lost. Without a next server or a run, nothing else would ever end it.
"""

from __future__ import annotations

import os
import time
from typing import Any

from tornado.ioloop import PeriodicCallback

UNUSED_SECONDS = float(os.environ.get("EXPLORER_CLUSTER_LONELY_SECONDS", "600"))


def dask_setup(scheduler: Any) -> None:
    """Called by Dask. Checks now and then whether a server or a run uses this cluster."""
    queue_by_priority(scheduler)
    scheduler.http_server.stop()  # without a key, it would tell everybody what is trained
    used_at = time.monotonic()

    async def check() -> None:
        nonlocal used_at
        has_servers = any(str(name).startswith("Client-") for name in scheduler.clients)
        if has_servers or scheduler.tasks:
            used_at = time.monotonic()
        elif time.monotonic() - used_at > UNUSED_SECONDS:
            await scheduler.close(reason="no server and no run")

    checks = PeriodicCallback(check, min(5000.0, 250 * UNUSED_SECONDS))
    checks.start()
    scheduler.explorer_checks = checks


def queue_by_priority(scheduler: Any) -> None:
    """A run waits here until a worker is free, and the one of the highest priority is next.

    Dask does so with tasks that look like the roots of a large graph, and deals out others at
    once: a run would wait for one that is dealt to the same worker, and be lost with it.
    """
    scheduler.is_rootish = lambda task: True
    scheduler.WORKER_SATURATION = 1.0
