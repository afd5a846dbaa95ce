"""A deleted run is moved aside, so that it can be brought back for a while.

It counts for its owner's quotas until it is removed for good: when that time is over, or earlier
if another run of theirs would not fit.
"""

import os
import shutil
import time
import uuid
from contextlib import suppress
from itertools import islice
from pathlib import Path

from explorer.catalog.run_index import ASIDE, DELETED, RunFolder, index_of
from explorer.runs.quotas import outdated
from explorer.system import limits
from explorer.system.atomic_files import Lock, is_held, write_json

STOPS_WITHIN = 5.0
"""Seconds that a worker has to stop before its run is deleted."""
LONGEST_MAKING = 3600
"""Seconds after which no process can still be creating a run."""
MOST_SWEPT = 20
"""Old runs that are removed at a time: a reader who starts a run waits for it."""


def set_aside(folder: Path) -> None:
    """Move a run aside, so that nobody finds it; a run that trains is stopped first.

    If its step takes long, the run is moved all the same: its worker ends when it writes next.
    Only its worker changes files in the folder. OSError if it cannot be moved.
    """
    _move(folder, folder.with_name(f"{ASIDE}{folder.name}"))


def bring_back(root: Path, name: str) -> None:
    """Bring a deleted run back. OSError if its time is over, or its name is taken."""
    aside = root / f"{ASIDE}{name}"
    if _is_over(aside):
        raise FileNotFoundError
    aside.rename(root / name)


def erase(folder: Path) -> None:
    """Remove a run for good, even if it was set aside."""
    gone = folder.with_name(f"{DELETED}{uuid.uuid4().hex}")
    _move(folder, gone)
    shutil.rmtree(gone, ignore_errors=True)


def set_aside_of(root: Path, owner: str | None) -> list[RunFolder]:
    """The runs of this owner, or of all, that can be brought back, the last deleted first."""
    there = [run for run in _deleted_by(root, owner) if not _is_over(root / run.name)]
    return sorted(there, key=lambda run: _time_moved(root / run.name), reverse=True)


def make_room(root: Path, owner: str) -> bool:
    """Remove this owner's deleted runs for good; returns whether there were any."""
    there = _deleted_by(root, owner)
    for run in there:
        with suppress(OSError):
            erase(root / run.name)
    return bool(there)


def sweep(root: Path) -> None:
    """Remove some of the runs whose days are over, the oldest first.

    It also removes deleted runs whose time is over, and the rests of killed processes.
    """
    there = index_of(root).now()
    for old in islice(outdated(root, there), MOST_SWEPT):
        if not is_held(root / old.name / "lock"):
            with suppress(OSError):
                erase(root / old.name)
    for run in there.aside:
        with suppress(OSError):
            if _time_moved(root / run.name) > time.time():  # the clock was set back: start again
                os.utime(root / run.name)
            elif _is_over(root / run.name):
                erase(root / run.name)
    for name in there.incomplete:
        with suppress(OSError):
            age = time.time() - (root / name).stat().st_mtime
            if name.startswith(DELETED) or age > LONGEST_MAKING:
                shutil.rmtree(root / name, ignore_errors=True)


def _move(folder: Path, to: Path) -> None:
    with Lock(folder / "lock") as lock:
        if not lock.acquire():
            with suppress(OSError):  # a full disk refuses the command; delete all the same
                write_json(folder / "control.json", {"command": "stop"})
                lock.acquire(patience=STOPS_WITHIN)
        folder.rename(to)


def _deleted_by(root: Path, owner: str | None) -> list[RunFolder]:
    """The deleted runs of this owner, or of all, even those whose time is over."""
    return [run for run in index_of(root).now().aside if owner is None or run.owner == owner]


def _is_over(aside: Path) -> bool:
    """Whether its time is over, though it is not removed yet."""
    return time.time() - _time_moved(aside) > limits.UNDO_SECONDS.most


def _time_moved(folder: Path) -> float:
    """The time at which it was moved here, or a set-back clock was noticed."""
    try:
        return os.stat(folder).st_ctime
    except OSError:
        return 0.0
