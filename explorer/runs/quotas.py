"""The quotas of runs: their number and their bytes, of one reader and of all.

Each function returns the sentence for the person who is refused, or None.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from threading import Lock

from explorer.catalog.parameters import count_parameters
from explorer.catalog.run_index import HOST, RunFolder, RunListing, index_of
from explorer.runs.run_size import trained_parameters
from explorer.runs.spec import RunSpec
from explorer.system import limits
from explorer.system.atomic_files import bytes_of, fits
from explorer.system.running_time import RunningTime

DAY = 24 * 3600
BYTES_OF_PARAMETER = 4


def keeping_fault(
    root: Path, owner: str, network: str = "", size: int = 0, more: int = 1
) -> str | None:
    """Why this owner, who comes from this network, cannot keep `more` runs of at least `size`.

    Deleted runs that they can bring back count as well.
    """
    there = index_of(root).now()
    everybodys = [*there.everybodys, *there.aside]
    mine = [run for run in everybodys if run.owner == owner]
    for limit, count in ((limits.RUNS_OF_READER, len(mine)), (limits.RUNS_KEPT, len(everybodys))):
        if not limit.allows(count + more):
            return _refusal(limit, count, more, "kept")
    if fault := _network_fault(_of(network, everybodys) + more - 1, network, limits.RUNS_KEPT):
        return fault
    sizes = sizes_of(root, there)
    for limit, size_of_all in (
        (limits.RUNS_BYTES_OF_READER, sum(sizes[run.name] for run in mine)),
        (limits.RUNS_BYTES, sum(sizes.values())),
    ):
        if size_of_all >= limit.most:
            return limit.refusal(size_of_all)
    by_network = _of(network, everybodys, sizes)
    return _network_fault(by_network, network, limits.RUNS_BYTES) or disk_fault(root, size)


def closing_bytes(spec: RunSpec) -> int:
    """The bytes that the end of a run may write: six numbers for each trained parameter.

    A copy of the model that it starts from comes on top.
    """
    copied = count_parameters(spec.model) if spec.parent else 0
    return BYTES_OF_PARAMETER * (6 * trained_parameters(spec) + copied)


def disk_fault(folder: Path, size: int) -> str | None:
    """Why this disk has no room for `size` bytes."""
    return None if fits(folder, size) else limits.DISK_LEFT.refusal(size)


def queue_fault(
    of_owner: int, of_all: int, queued: Iterable[RunFolder], network: str, more: int = 1
) -> str | None:
    """Why the queue has no place for `more` runs besides those that train or wait."""
    for limit, count in ((limits.QUEUE_OF_READER, of_owner), (limits.QUEUE, of_all)):
        if not limit.allows(count + more):
            return _refusal(limit, count, more, "training or queued")
    return _network_fault(_of(network, queued) + more - 1, network, limits.QUEUE)


def _refusal(limit: limits.Limit, count: int, more: int, how: str) -> str:
    """The sentence of the limit; several runs start together or not at all."""
    if more == 1:
        return limit.refusal(count)
    return (
        f"These {more} runs start together or not at all, and there is room for "
        f"{max(0, limit.most - count):,} more: at most {limit.in_words(limit.most)} are {how} here."
    )


def _of(network: str, runs: Iterable[RunFolder], sizes: Mapping[str, int] | None = None) -> int:
    """The number of these runs that come from the network, or the sum of their sizes."""
    names = (run.name for run in runs if run.network == network)
    return sum(1 if sizes is None else sizes[name] for name in names)


def _network_fault(amount: int, network: str, whole: limits.Limit) -> str | None:
    """Why this network, which uses `amount` of the whole limit, gets no other run.

    An owner is a cookie, and one person can have as many cookies as they like.
    """
    if network and amount >= whole.most * limits.NETWORK_SHARE.most // 100:
        return limits.NETWORK_SHARE.refusal()
    return None


def outdated(root: Path, there: RunListing) -> Iterator[RunFolder]:
    """The runs whose days are over, the oldest first; never a run of whoever runs the server."""
    ran, most = RunningTime(root), limits.RUNS_DAYS.most * DAY
    for run in reversed(there.everybodys):
        if ran.since(run.began / 1e9) <= most:
            return
        with suppress(OSError):
            if run.began and run.owner != HOST and ran.age(last_written(root, run)) > most:
                yield run


def last_written(root: Path, run: RunFolder) -> Path:
    """The file that every event of a run writes, or where it has none the one written first."""
    status = root / run.name / "status.json"
    return status if status.exists() else status.with_name("spec.json")


@lru_cache(maxsize=16)
class _Sizes:
    """The bytes of the runs of one folder; a run is measured again when its status changes."""

    def __init__(self, root: str) -> None:
        self._root = Path(root)
        self._guard = Lock()
        self._sizes: dict[str, tuple[float, int]] = {}

    def now(self, there: RunListing) -> Mapping[str, int]:
        """The bytes of each run, by its name."""
        with self._guard:
            every = (*there.everybodys, *there.aside)
            self._sizes = {run.name: self._measure(run.name) for run in every}
            return {name: size for name, (_, size) in self._sizes.items()}

    def _measure(self, name: str) -> tuple[float, int]:
        folder, time_written = self._root / name, 0.0
        with suppress(OSError):
            time_written = (folder / "status.json").stat().st_mtime  # every event writes it
        before = self._sizes.get(name)
        if before and before[0] == time_written:
            return before
        return time_written, bytes_of(folder)


def sizes_of(root: Path, there: RunListing) -> Mapping[str, int]:
    """The bytes on disk of each of these runs, by its name; only changed runs are measured."""
    return _Sizes(str(root)).now(there)
