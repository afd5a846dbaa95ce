"""A deleted run is moved aside, from where it can be brought back for a while.

It still counts for the quotas of whose it is, until it is removed for good: when that while is
over, or before, when another run of theirs would not fit.
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
"""Seconds that a worker is given to stop before its run is deleted."""
LONGEST_MAKING = 3600
"""Seconds after which no process can still be making a run."""
MOST_SWEPT = 20
"""Old runs that are removed at a time: whoever starts a run waits for it."""


def set_aside(folder: Path) -> None:
    """Take the run away from where it is found; one that trains is stopped first.

    One whose step takes long vanishes all the same: its worker ends where it writes next.
    Nothing in the folder changes but what its worker writes. OSError where it cannot be moved.
    """
    _move(folder, folder.with_name(f"{ASIDE}{folder.name}"))


def bring_back(root: Path, name: str) -> None:
    """Put a run back that was set aside. OSError where its while is over, or its name is taken."""
    aside = root / f"{ASIDE}{name}"
    if _is_over(aside):
        raise FileNotFoundError
    aside.rename(root / name)


def erase(folder: Path) -> None:
    """Remove a run for good, also one that was set aside."""
    gone = folder.with_name(f"{DELETED}{uuid.uuid4().hex}")
    _move(folder, gone)
    shutil.rmtree(gone, ignore_errors=True)


def set_aside_of(root: Path, owner: str | None) -> list[RunFolder]:
    """The runs that can be brought back, of this owner or of everybody; the last deleted first."""
    there = [run for run in _deleted_by(root, owner) if not _is_over(root / run.name)]
    return sorted(there, key=lambda run: _changed(root / run.name), reverse=True)


def make_room(root: Path, owner: str) -> bool:
    """Remove what this owner has deleted, for good; whether there was anything."""
    there = _deleted_by(root, owner)
    for run in there:
        with suppress(OSError):
            erase(root / run.name)
    return bool(there)


def sweep(root: Path) -> None:
    """Remove some of the runs that are kept no longer, the oldest first.

    And what was deleted a while ago, and what is left of a process that was killed.
    """
    there = index_of(root).now()
    for old in islice(outdated(root, there), MOST_SWEPT):
        if not is_held(root / old.name / "lock"):
            with suppress(OSError):
                erase(root / old.name)
    for run in there.aside:
        with suppress(OSError):
            if _changed(root / run.name) > time.time():  # set back: its while begins anew
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
            with suppress(OSError):  # on a full disk nothing is written, and all the more deleted
                write_json(folder / "control.json", {"command": "stop"})
                lock.acquire(patience=STOPS_WITHIN)
        folder.rename(to)


def _deleted_by(root: Path, owner: str | None) -> list[RunFolder]:
    """What this owner, or everybody, has deleted, also what can no longer be brought back."""
    return [run for run in index_of(root).now().aside if owner is None or run.owner == owner]


def _is_over(aside: Path) -> bool:
    """Whether its while has passed, though nothing has removed it yet."""
    return time.time() - _changed(aside) > limits.UNDO_SECONDS.most


def _changed(folder: Path) -> float:
    """When it was moved here, or the clock was set back; nothing else changes the folder itself."""
    try:
        return os.stat(folder).st_ctime
    except OSError:
        return 0.0
