"""A deleted run is moved aside, so that it can be brought back for a while.

It counts for its owner's quotas until it is removed for good: when that time is over, or earlier
if another run of theirs would not fit. A run whose days are over is moved aside as well, for as
many days again.
"""

import os
import shutil
import uuid
from contextlib import suppress
from itertools import islice
from pathlib import Path

from explorer.catalog.run_index import ASIDE, DELETED, HOST, RunFolder, index_of
from explorer.runs.quotas import DAY, last_written, outdated
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
    there = index_of(root).now().aside
    run = next((run for run in there if run.name == f"{ASIDE}{name}"), None)
    if run is None or not _can_come_back(root, run, ran := RunningTime(root)):
        raise FileNotFoundError
    if _is_outdated(root, run, ran):
        os.utime(last_written(root, run))  # its days begin anew
    (root / run.name).rename(root / name)


def erase(folder: Path) -> None:
    """Remove a run for good, even if it was set aside."""
    gone = folder.with_name(f"{DELETED}{uuid.uuid4().hex}")
    _move(folder, gone)
    shutil.rmtree(gone, ignore_errors=True)


def set_aside_of(root: Path, owner: str | None) -> list[RunFolder]:
    """The runs of this owner, or of all, that can be brought back, the last deleted first."""
    ran, moved = RunningTime(root), list[tuple[float, RunFolder]]()
    for run in index_of(root).now().aside:
        with suppress(OSError):
            if owner in (None, run.owner) and _can_come_back(root, run, ran):
                moved.append(((root / run.name).stat().st_mtime, run))
    return [run for _, run in sorted(moved, reverse=True)]


def make_room(root: Path, owner: str) -> bool:
    """Remove this owner's deleted runs and all outdated ones for good; whether there were any."""
    ran, is_more = RunningTime(root), False
    for run in index_of(root).now().aside:
        with suppress(OSError):
            if run.owner == owner or _is_outdated(root, run, ran):
                erase(root / run.name)
                is_more = True
    return is_more


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
            if not _can_come_back(root, run, ran):
                erase(root / run.name)
    sweep_files(root)
    for name in there.incomplete:
        with suppress(OSError):
            if name.startswith(DELETED) or ran.age(root / name) > LONGEST_MAKING:
                shutil.rmtree(root / name, ignore_errors=True)


def _can_come_back(root: Path, run: RunFolder, ran: RunningTime) -> bool:
    """Whether the time of a run that stands aside is not over; OSError if it is gone."""
    days, seconds = limits.RUNS_DAYS.most, limits.UNDO_SECONDS.most
    most = days * DAY if _is_outdated(root, run, ran) else seconds
    return ran.age(root / run.name) <= most


def _is_outdated(root: Path, run: RunFolder, ran: RunningTime) -> bool:
    """Whether its days were over when it was set aside."""
    before = ran.age(last_written(root, run)) - ran.age(root / run.name)
    return run.owner != HOST and before > limits.RUNS_DAYS.most * DAY


def _move(folder: Path, to: Path) -> None:
    with Lock(folder / "lock") as lock:
        if not lock.acquire():
            with suppress(OSError):  # a full disk refuses the command; delete all the same
                write_json(folder / "control.json", {"command": "stop"})
                lock.acquire(patience=STOPS_WITHIN)
        folder.rename(to)
