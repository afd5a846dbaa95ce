"""Loaded by every local worker at its start, so that the first run waits for no import."""

from __future__ import annotations

import atexit
import os
from typing import Any

import torch

from explorer.runs import worker as _worker  # noqa: F401


def dask_setup(worker: Any) -> None:
    """Called by Dask. The first optimizer of a process takes as long as importing torch."""
    atexit.register(os._exit, 0)  # torch would compute for a second to take itself apart
    worker.http_server.stop()  # it would answer everybody
    torch.set_num_threads(1)
    parameter = torch.nn.Parameter(torch.zeros(1))
    parameter.grad = torch.zeros(1)
    torch.optim.AdamW([parameter]).step()
