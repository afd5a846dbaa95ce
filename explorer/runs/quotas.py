"""How many runs are taken and how much of them is kept: of one reader, and of all.

Each question is answered by a sentence for the person who is refused, or by None.
"""

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from threading import Lock

from explorer.catalog.parameters import count_parameters
from explorer.catalog.run_index import HOST, RunFolder, RunListing, index_of
from explorer.runs.run_size import trained_parameters
from explorer.runs.spec import RunSpec
from explorer.system import limits
from explorer.system.atomic_files import fits

DAY = 24 * 3600
BYTES_OF_PARAMETER = 4


def keeping_fault(
    root: Path, owner: str, network: str = "", size: int = 0, more: int = 1
) -> str | None:
    """Why this owner, who comes from this network, cannot keep `more` runs of at least `size`.

    What they deleted and can bring back counts as well.
    """
    there = index_of(root).now()
    everybodys = [*there.everybodys, *there.aside]
    mine = [run for run in everybodys if run.owner == owner]
    for limit, count in (
        (limits.RUNS_OF_READER, len(mine)),
        (limits.RUNS_KEPT, len(everybodys)),
    ):
        if not limit.allows(count + more):
            return _refusal(limit, count, more, "kept")
    if fault := _network_fault(_of(network, everybodys) + more - 1, network, limits.RUNS_KEPT):
        return fault
    sizes = sizes_of(root, there)
    for limit, written in (
        (limits.RUNS_BYTES_OF_READER, sum(sizes[run.name] for run in mine)),
        (limits.RUNS_BYTES, sum(sizes.values())),
    ):
        if written >= limit.most:
            return limit.refusal(written)
    by_network = _of(network, everybodys, sizes)
    return _network_fault(by_network, network, limits.RUNS_BYTES) or disk_fault(root, size)


def closing_bytes(spec: RunSpec) -> int:
    """What the end of a run may write: what it has trained, and thrice that its state.

    With the copy of the model that it starts from.
    """
    copied = count_parameters(spec.model) if spec.parent else 0
    return BYTES_OF_PARAMETER * (6 * trained_parameters(spec) + copied)


def disk_fault(folder: Path, size: int) -> str | None:
    """Why so many bytes are not written to this disk."""
    return None if fits(folder, size) else limits.DISK_LEFT.refusal(size)


def queue_fault(
    of_owner: int, of_all: int, queued: Iterable[RunFolder], network: str, more: int = 1
) -> str | None:
    """Why no `more` runs are taken where so many train or wait, and `queued` of those are known."""
    for limit, count in ((limits.QUEUE_OF_READER, of_owner), (limits.QUEUE, of_all)):
        if not limit.allows(count + more):
            return _refusal(limit, count, more, "training or queued")
    return _network_fault(_of(network, queued) + more - 1, network, limits.QUEUE)


def _refusal(limit: limits.Limit, count: int, more: int, how: str) -> str:
    """The sentence of the limit; of several runs, which are taken together or not at all."""
    if more == 1:
        return limit.refusal(count)
    return (
        f"These {more} runs start together or not at all, and there is room for "
        f"{max(0, limit.most - count):,} more: at most {limit.in_words(limit.most)} are {how} here."
    )


def _of(network: str, runs: Iterable[RunFolder], sizes: Mapping[str, int] | None = None) -> int:
    """How many of these runs are of the network, or what theirs hold together."""
    names = (run.name for run in runs if run.network == network)
    return sum(1 if sizes is None else sizes[name] for name in names)


def _network_fault(taken: int, network: str, whole: limits.Limit) -> str | None:
    """Why no other run is taken from this network, which has taken so much of the whole.

    An owner is a cookie, and one person can have as many as they like.
    """
    if network and taken >= whole.most * limits.NETWORK_SHARE.most // 100:
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
    """What the files of a folder and of those in it hold; one that vanishes has none.

    A file with several names in it takes its room once.
    """
    return sum(dict(_files_of(folder)).values())


def _files_of(folder: Path | str) -> Iterator[tuple[int, int]]:
    """The number and the bytes of each file."""
    try:
        with os.scandir(folder) as entries:
            for each in entries:
                if each.is_dir(follow_symlinks=False):
                    yield from _files_of(each.path)
                else:
                    found = each.stat(follow_symlinks=False)
                    yield found.st_ino, found.st_size
    except OSError:
        pass


class _Sizes:
    """The bytes of the runs of one folder; a run is measured anew once its status was written."""

    def __init__(self, root: str) -> None:
        self._root = Path(root)
        self._guard = Lock()
        self._known: dict[str, tuple[float, int]] = {}

    def now(self, there: RunListing) -> Mapping[str, int]:
        """The bytes of each, by its name."""
        with self._guard:
            every = (*there.everybodys, *there.aside)
            self._known = {run.name: self._measured(run.name) for run in every}
            return {name: size for name, (_, size) in self._known.items()}

    def _measured(self, name: str) -> tuple[float, int]:
        folder = self._root / name
        written = _last_written(folder)
        before = self._known.get(name)
        return before if before and before[0] == written else (written, bytes_of(folder))


def sizes_of(root: Path, there: RunListing) -> Mapping[str, int]:
    """The bytes on disk of each of these runs, by its name; measured anew where it has changed."""
    return _sizes_of(str(root)).now(there)


@lru_cache(maxsize=16)
def _sizes_of(root: str) -> _Sizes:
    return _Sizes(root)


def _last_written(folder: Path) -> float:
    """When its status was, as with everything that happens to a run; 0 where it has none."""
    try:
        return (folder / "status.json").stat().st_mtime
    except OSError:
        return 0.0
