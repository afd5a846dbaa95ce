"""Dask loads this module at the start of the scheduler and of each worker.

Nothing secret is logged: the name of a run holds the key of its link, and an error may quote the
text that it is trained on; Dask would log both for each task that fails. HTTP, which needs no key,
is off. The scheduler ends a cluster that nobody uses: when a server is killed its cluster goes on,
so that the next server finds it and no run is lost. A worker imports everything before the first
run comes.
"""

import atexit
import logging
import os
import sys
import threading
import time
from types import TracebackType
from typing import Any

UNUSED_SECONDS = float(os.environ.get("EXPLORER_CLUSTER_UNUSED_SECONDS", "600"))


def dask_setup(process: Any) -> None:
    """Called by Dask. From now on, log lines have no message, and errors no text."""
    logging.Handler.format = _format  # type: ignore[method-assign, assignment]
    sys.excepthook = _uncaught
    threading.excepthook = lambda error: _uncaught(error.exc_type, None, error.exc_traceback)
    if server := getattr(process, "http_server", None):
        server.stop()  # it answers anybody without a key
    kinds = {kind.__name__ for kind in type(process).__mro__}
    if "Scheduler" in kinds:
        _watch_use(process)
    elif "Worker" in kinds:
        _get_ready(process)


def _format(_handler: logging.Handler, record: logging.LogRecord) -> str:
    """The place of a log record as one line, without its message."""
    kind = record.exc_info[0] if record.exc_info else None
    place = f"{record.name}: {record.module}.{record.funcName}, line {record.lineno}"
    return f"{record.levelname} {place}{f', {kind.__name__}' if kind else ''}"


def _uncaught(
    kind: type[BaseException], _error: BaseException | None, trace: TracebackType | None
) -> None:
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    at = f"{trace.tb_frame.f_code.co_name}, line {trace.tb_lineno}" if trace else "nowhere"
    sys.stderr.write(f"ERROR {kind.__name__} in {at}\n")


def _watch_use(scheduler: Any) -> None:
    """Check regularly whether a server or a run uses this cluster."""
    from tornado.ioloop import PeriodicCallback

    used_at = time.monotonic()

    async def check() -> None:
        nonlocal used_at
        has_servers = any(str(name).startswith("Client-") for name in scheduler.clients)
        if has_servers or scheduler.tasks:
            used_at = time.monotonic()
        elif time.monotonic() - used_at > UNUSED_SECONDS:
            await scheduler.close(reason="no server and no run")

    scheduler.explorer_checks = PeriodicCallback(check, min(5000.0, 250 * UNUSED_SECONDS))
    scheduler.explorer_checks.start()


def _get_ready(_worker: Any) -> None:
    """Train one step: the first optimizer of a process takes as long as importing torch."""
    import torch

    from explorer.runs import worker as _training  # noqa: F401
    from explorer.tasks import TASKS
    from models import Transformer
    from models.training import train

    atexit.register(os._exit, 0)  # torch would compute for a second to take itself apart
    torch.set_num_threads(1)
    task = TASKS["reverse"]
    small = task.training.replace(steps=1, batch_size=1)
    for _ in train(Transformer(task.model), lambda step: task.batch(step, small), small):
        pass

    def make_data() -> None:
        """Make the training and held-out examples of each task, once in a process."""
        for task in TASKS.values():
            task.batch(0, task.training.replace(batch_size=1))
            getattr(task, "held_out_batch", None)

    threading.Thread(target=make_data, name="data of the tasks", daemon=True).start()
