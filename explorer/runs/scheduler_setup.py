"""Loaded by the local cluster's scheduler: an unused cluster ends itself.

When a server is killed its cluster goes on, so that the next server finds it and no run is
lost. Without a next server or a run, nothing else would ever end it.
"""

import os
import time
from typing import Any

from tornado.ioloop import PeriodicCallback

UNUSED_SECONDS = float(os.environ.get("EXPLORER_CLUSTER_LONELY_SECONDS", "600"))


def dask_setup(scheduler: Any) -> None:
    """Called by Dask. Checks now and then whether a server or a run uses this cluster."""
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
