"""Run by the local cluster's scheduler at its start: a cluster nobody needs ends itself.

After a server was killed its cluster goes on, so that the next server finds it
and no run is lost. When no server comes and nothing is left to train, nobody
else would ever end it.
"""

from __future__ import annotations

import os
import time
from typing import Any

from tornado.ioloop import PeriodicCallback

LONELY_SECONDS = float(os.environ.get("EXPLORER_CLUSTER_LONELY_SECONDS", "600"))


def dask_setup(scheduler: Any) -> None:
    """Called by Dask. Looks now and then whether a server or a run needs this cluster."""
    needed_at = time.monotonic()

    async def look() -> None:
        nonlocal needed_at
        has_servers = any(str(name).startswith("Client-") for name in scheduler.clients)
        if has_servers or scheduler.tasks:
            needed_at = time.monotonic()
        elif time.monotonic() - needed_at > LONELY_SECONDS:
            await scheduler.close(reason="no server and no run")

    watch = PeriodicCallback(look, min(5000.0, 250 * LONELY_SECONDS))
    watch.start()
    scheduler.explorer_watch = watch
