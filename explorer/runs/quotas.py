"""How many runs are taken and how much of them is kept: of one reader, and of all.

Each question is answered by a sentence for the person who is refused, or by None.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from threading import Lock

from explorer.app import limits
from explorer.catalog.run_index import HOST, RunFolder, RunListing, index_of

DAY = 24 * 3600


def keeping_fault(root: Path, owner: str, network: str = "") -> str | None:
    """Why this owner, who comes from this network, cannot keep another run."""
    there = index_of(root).now()
    for limit, count in (
        (limits.RUNS_OF_READER, len(there.newest(owner))),
        (limits.RUNS_KEPT, len(there.everybodys)),
    ):
        if not limit.allows(count + 1):
            return limit.refusal(count)
    if fault := _network_fault(there.everybodys, network, limits.RUNS_KEPT):
        return fault
    written = _sizes_of(str(root)).by_owner(there)
    for limit, size in (
        (limits.RUNS_BYTES_OF_READER, written[owner]),
        (limits.RUNS_BYTES, written.total()),
    ):
        if size >= limit.most:
            return limit.refusal(size)
    return None


def queue_fault(
    of_owner: int, of_all: int, queued: Iterable[RunFolder], network: str
) -> str | None:
    """Why no run is taken where so many train or wait already, and `queued` of those are known."""
    for limit, count in ((limits.QUEUE_OF_READER, of_owner), (limits.QUEUE, of_all)):
        if not limit.allows(count + 1):
            return limit.refusal(count)
    return _network_fault(queued, network, limits.QUEUE)


def _network_fault(runs: Iterable[RunFolder], network: str, whole: limits.Limit) -> str | None:
    """Why no other run is taken from this network, which has its share of these.

    An owner is a cookie, and one person can have as many as they like.
    """
    count = sum(1 for run in runs if run.network == network) if network else 0
    if network and count >= whole.most * limits.NETWORK_SHARE.most // 100:
        return limits.NETWORK_SHARE.refusal()
    return None


def outdated(root: Path, there: RunListing) -> Iterator[RunFolder]:
    """The runs that are kept no longer, the oldest first; never one of who runs the server."""
    end = time.time() - limits.RUNS_DAYS.most * DAY
    for run in reversed(there.everybodys):
        if run.began > end * 1e9:
            return
        if run.began and run.owner != HOST and _last_written(root / run.name) < end:
            yield run


def bytes_of(folder: Path | str) -> int:
    """What the files of a folder and of those in it hold; one that vanishes has none."""
    total = 0
    try:
        with os.scandir(folder) as entries:
            for each in entries:
                if each.is_dir(follow_symlinks=False):
                    total += bytes_of(each.path)
                else:
                    total += each.stat(follow_symlinks=False).st_size
    except OSError:
        pass
    return total


class _Sizes:
    """The bytes of the runs of one folder; a run is measured anew once its status was written."""

    def __init__(self, root: str) -> None:
        self._root = Path(root)
        self._guard = Lock()
        self._known: dict[str, tuple[float, int]] = {}

    def by_owner(self, there: RunListing) -> Counter[str | None]:
        with self._guard:
            self._known = {run.name: self._measured(run.name) for run in there.everybodys}
            written: Counter[str | None] = Counter()
            for run in there.everybodys:
                written[run.owner] += self._known[run.name][1]
            return written

    def _measured(self, name: str) -> tuple[float, int]:
        folder = self._root / name
        written = _last_written(folder)
        before = self._known.get(name)
        return before if before and before[0] == written else (written, bytes_of(folder))


@lru_cache(maxsize=16)
def _sizes_of(root: str) -> _Sizes:
    return _Sizes(root)


def _last_written(folder: Path) -> float:
    """When its status was, as with everything that happens to a run; 0 where it has none."""
    try:
        return (folder / "status.json").stat().st_mtime
    except OSError:
        return 0.0
