"""Loaded by every local worker at its start, so that the first run waits for no import."""

import atexit
import os
import threading
from typing import Any

import torch

from explorer.runs import worker as _worker  # noqa: F401
from explorer.tasks import TASKS
from models import Transformer
from models.training import train


def dask_setup(worker: Any) -> None:
    """Called by Dask. The first optimizer of a process takes as long as importing torch."""
    atexit.register(os._exit, 0)  # torch would compute for a second to take itself apart
    worker.http_server.stop()  # it would answer everybody
    torch.set_num_threads(1)
    task = TASKS["reverse"]
    small = task.training.replace(steps=1, batch_size=1)
    for _ in train(Transformer(task.model), lambda step: task.batch(step, small), small):
        pass
    threading.Thread(target=make_data, name="data of the tasks", daemon=True).start()


def make_data() -> None:
    """What each task draws its examples from, and holds out: it is made once in a process."""
    for task in TASKS.values():
        task.batch(0, task.training.replace(batch_size=1))
        getattr(task, "held_out_batch", None)
