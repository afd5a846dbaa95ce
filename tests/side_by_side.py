"""Processes run the tests side by side; some work is done by one of them while the others wait."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID", "")
"""The same in all processes of a run of the tests; empty where there is only one."""
FIGURE = "figure"
"""What a benchmark's figure is called in the report, which may come from another process."""


def name_of(run: str) -> str:
    return f"attention-explorer-{run}"


def tidy(run: str) -> None:
    """Nothing of this run is held any more: its lock files go."""
    for lock in Path(tempfile.gettempdir()).glob(f"{name_of(run)}-*"):
        lock.unlink(missing_ok=True)


@contextmanager
def held(what: str, *, alone: bool) -> Iterator[None]:
    """With others who hold it too, or alone: then nobody else holds it meanwhile."""
    if not RUN:
        yield
        return
    with Path(tempfile.gettempdir(), f"{name_of(RUN)}-{what}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield
