"""The runs in a folder of runs, the newest first, with their owners; kept until the folder changes.

The time of the folder tells when entries came or went. Only then are its names read again, and
only the new runs are read: what the index knows of a run never changes. So a rerun of a page reads
the time of one folder, however many runs there are.
"""

import os
import re
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from explorer.catalog.folders import own_name

SNAPSHOTS = "snapshots"
STEP_NAME = re.compile(r"step-(\d{6,12})")


def step_folders(folder: Path) -> list[tuple[int, Path]]:
    """The subfolders called step-000123 with their steps, the smallest step first."""
    try:
        matches = [(STEP_NAME.fullmatch(path.name), path) for path in folder.iterdir()]
    except OSError:
        return []
    return sorted((int(match[1]), path) for match, path in matches if match)


def run_of(checkpoint: Path) -> Path:
    """The folder of the run around a finished model or around one of its snapshots."""
    return checkpoint.parents[1] if checkpoint.parent.name == SNAPSHOTS else checkpoint.parent


NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
OWNER = re.compile(r"[0-9a-f]{32}")
OWNER_FILE = "owner"
HOST = ""
"""Whoever runs the server: the owner of every run that has a plain name."""
BEING_MADE, DELETED = ".new-", ".deleted-"
"""Prefixes of the folder of a run that is not complete yet, or is being removed."""
ASIDE = ".aside-"
"""Prefix of the folder of a deleted run that can be brought back; the run's name follows."""
LARGEST_STEP_BACK = 24 * 3600 * 1_000_000_000
"""Nanoseconds by which a clock may be set back while the runs keep their order."""
SETTLED = 1_000_000_000
"""Nanoseconds after which the next change of a folder surely changes its time."""


class Maker(NamedTuple):
    """The owner of a run and the network they came from, both as digests."""

    owner: str | None
    network: str = ""


class RunFolder(NamedTuple):
    """A run as its folder describes it; the newer of two compares as larger."""

    began: int
    """The time at which its settings were written; 0 where it has none."""
    number: int
    name: str
    task: str
    owner: str | None
    """None where the folder names nobody: then only whoever runs the server sees the run."""
    network: str = ""
    """The network that its owner came from; empty where it is not known."""


@dataclass(frozen=True)
class RunListing:
    by_name: Mapping[str, RunFolder] = field(default_factory=dict)
    everybodys: Sequence[RunFolder] = ()
    by_owner: Mapping[str | None, Sequence[RunFolder]] = field(default_factory=dict)
    highest: Mapping[tuple[str | None, str], int] = field(default_factory=dict)
    aside: Sequence[RunFolder] = ()
    """Deleted runs that can be brought back, by the names of their folders."""
    incomplete: Sequence[str] = ()
    """Folders of runs that are not complete yet, or are being removed."""

    def newest(self, owner: str | None = None) -> Sequence[RunFolder]:
        """The runs of this owner, or of everybody, the newest first."""
        return self.everybodys if owner is None else self.by_owner.get(owner, ())

    def next_number(self, task: str, owner: str) -> int:
        """One more than the highest number of this owner's runs of the task."""
        return 1 + self.highest.get((owner, task), 0)


class RunIndex:
    """The runs of one folder, for any thread; one thread at a time reads the folder."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._guard = Lock()
        self._listing = RunListing()
        self._time = -1
        """The time of the folder when it was read; -1 where a later change may have that time."""

    def now(self) -> RunListing:
        if self._time != _time_of(self._root):
            with self._guard:
                changed, begun = _time_of(self._root), time.time_ns()
                if self._time != changed:
                    self._listing = self._read_anew()
                    self._time = changed if begun - changed > SETTLED else -1
        return self._listing

    def _read_anew(self) -> RunListing:
        before, incomplete, aside = self._listing, list[str](), list[str]()
        names = set()
        _, folders, _ = next(os.walk(self._root), ("", [], []))
        for name in folders:
            if NAME.fullmatch(name):
                names.add(name)
            elif name.startswith((BEING_MADE, DELETED)):
                incomplete.append(name)
            elif name.startswith(ASIDE) and NAME.fullmatch(name.removeprefix(ASIDE)):
                aside.append(name)
        # A folder without settings may have been incomplete, so it is read again.
        old = {name: run for name, run in before.by_name.items() if run.began and name in names}
        is_same = incomplete == before.incomplete and aside == [run.name for run in before.aside]
        if is_same and len(old) == len(before.by_name) == len(names):
            return before
        new = (_run_folder(self._root, name) for name in names - old.keys())
        deleted = [_run_folder(self._root, name) for name in aside]
        return _listing(sorted([*old.values(), *new], reverse=True), deleted, incomplete)


def index_of(root: Path | str) -> RunIndex:
    """The index of this folder of runs, one for the whole process."""
    return _index_of(os.path.abspath(root))


_index_of = lru_cache(maxsize=16)(RunIndex)


def keep_order(spec: Path, there: RunListing) -> None:
    """Date the settings of a new run after those of the newest, even if the clock was set back."""
    newest = there.everybodys[0].began if there.everybodys else 0
    if 0 <= newest - spec.stat().st_mtime_ns < LARGEST_STEP_BACK:
        os.utime(spec, ns=(newest + 1, newest + 1))


def maker_in(folder: Path | str) -> Maker:
    """The owner that the folder of a run names, None where nobody, and their network."""
    if own_name(name := os.path.basename(folder)) == name:
        return Maker(HOST)
    try:
        with open(os.path.join(folder, OWNER_FILE), encoding="ascii") as file:
            digests = file.read(100).split()
    except (OSError, UnicodeDecodeError):
        return Maker(None)
    if len(digests) not in (1, 2) or not all(map(OWNER.fullmatch, digests)):
        return Maker(None)
    return Maker(*digests)


def _run_folder(root: str, name: str) -> RunFolder:
    folder = os.path.join(root, name)
    try:
        began = os.stat(os.path.join(folder, "spec.json")).st_mtime_ns
    except OSError:
        began = 0
    task, _, digits = own_name(name).removeprefix(ASIDE).rpartition("-")
    number = int(digits) if digits.isdecimal() else 0
    return RunFolder(began, number, name, task, *maker_in(folder))


def _listing(
    runs: Sequence[RunFolder], aside: Sequence[RunFolder], incomplete: Sequence[str]
) -> RunListing:
    by_owner: dict[str | None, list[RunFolder]] = defaultdict(list)
    highest: Counter[tuple[str | None, str]] = Counter()
    for run in runs:
        by_owner[run.owner].append(run)
    for run in (*runs, *aside):  # a new run does not take the name of one that may come back
        highest[run.owner, run.task] = max(highest[run.owner, run.task], run.number)
    return RunListing({run.name: run for run in runs}, runs, by_owner, highest, aside, incomplete)


def _time_of(root: str) -> int:
    """The time at which entries of the folder came or went; 0 where there is no folder."""
    try:
        return os.stat(root).st_mtime_ns
    except OSError:
        return 0
