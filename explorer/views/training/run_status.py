"""How a run stands, as the page says it everywhere."""

from __future__ import annotations

from explorer.runs.cluster import cluster
from explorer.runs.run import Run
from explorer.runs.spec import INTERRUPTED, WAITING, Status


def status_of(run: Run) -> Status:
    """The run's own word, unless it waits for a cluster that has never heard of it."""
    status = run.status()
    if status.state == WAITING and cluster().is_up and not cluster().has(run):
        return status.replace(state=INTERRUPTED)
    return status
