"""A deleted run is moved aside, so that it can be brought back for a while.

It counts for its owner's quotas until it is removed for good: when that time is over, or earlier
if another run of theirs would not fit.
"""

import os
import shutil
import uuid
from contextlib import suppress
from itertools import islice
from pathlib import Path

from explorer.catalog.run_index import ASIDE, DELETED, RunFolder, index_of
from explorer.runs.quotas import outdated
from explorer.system import limits
from explorer.system.atomic_files import Lock, is_held, sweep_files, write_json
from explorer.system.running_time import RunningTime

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
    aside = folder.with_name(f"{ASIDE}{folder.name}")
    _move(folder, aside)
    os.utime(aside)  # its age begins


def bring_back(root: Path, name: str) -> None:
    """Bring a deleted run back. OSError if its time is over, or its name is taken."""
    aside = root / f"{ASIDE}{name}"
    if RunningTime(root).age(aside) > limits.UNDO_SECONDS.most:
        raise FileNotFoundError
    aside.rename(root / name)


def erase(folder: Path) -> None:
    """Remove a run for good, even if it was set aside."""
    gone = folder.with_name(f"{DELETED}{uuid.uuid4().hex}")
    _move(folder, gone)
    shutil.rmtree(gone, ignore_errors=True)


def set_aside_of(root: Path, owner: str | None) -> list[RunFolder]:
    """The runs of this owner, or of all, that can be brought back, the last deleted first."""
    ran, moved = RunningTime(root), list[tuple[float, RunFolder]]()
    for run in _deleted_by(root, owner):
        with suppress(OSError):
            if ran.age(root / run.name) <= limits.UNDO_SECONDS.most:
                moved.append(((root / run.name).stat().st_mtime, run))
    return [run for _, run in sorted(moved, reverse=True)]


def make_room(root: Path, owner: str) -> bool:
    """Remove this owner's deleted runs for good; returns whether there were any."""
    there = _deleted_by(root, owner)
    for run in there:
        with suppress(OSError):
            erase(root / run.name)
    return bool(there)


def sweep(root: Path) -> None:
    """Set some of the runs aside whose days are over, the oldest first.

    It also removes those that have stood aside for their time, and the rests of killed processes.
    """
    there, ran = index_of(root).now(), RunningTime(root)
    for old in islice(outdated(root, there), MOST_SWEPT):
        if not is_held(root / old.name / "lock"):
            with suppress(OSError):
                set_aside(root / old.name)
    for run in there.aside:
        with suppress(OSError):
            if ran.age(root / run.name) > limits.UNDO_SECONDS.most:
                erase(root / run.name)
    sweep_files(root)
    for name in there.incomplete:
        with suppress(OSError):
            if name.startswith(DELETED) or ran.age(root / name) > LONGEST_MAKING:
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
