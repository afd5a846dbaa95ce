"""Which runs a folder of runs holds, the newest first, and whose each is; kept until they change.

The folder says itself when entries came or went. Only then are its names read again, and of the
runs only those that are new: what is known of a run here never changes. So a rerun of a page asks
one file for its time, however many runs there are.
"""

import os
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
        found = [(STEP_NAME.fullmatch(path.name), path) for path in folder.iterdir()]
    except OSError:
        return []
    return sorted((int(match[1]), path) for match, path in found if match)


def run_of(checkpoint: Path) -> Path:
    """The folder of the run around a finished model or around one of its snapshots."""
    return checkpoint.parents[1] if checkpoint.parent.name == SNAPSHOTS else checkpoint.parent


NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
OWNER = re.compile(r"[0-9a-f]{32}")
OWNER_FILE = "owner"
HOST = ""
"""Who runs the server: the owner of every run that has a plain name."""
BEING_MADE, DELETED = ".new-", ".deleted-"
"""How the folders begin of a run that is not there yet, or no more."""
ASIDE = ".aside-"
"""How that begins of a run which was deleted and can be brought back; its name follows."""
LARGEST_STEP_BACK = 24 * 3600 * 1_000_000_000
"""Nanoseconds by which a clock may have been set back for runs to stay in their order."""
SETTLED = 1_000_000_000
"""Nanoseconds after which a folder would show another change by another time."""


class Maker(NamedTuple):
    """Whose a run is, and where they came from: both as digests."""

    owner: str | None
    network: str = ""


class RunFolder(NamedTuple):
    """A run by its folder alone; of two the newer is the larger."""

    began: int
    """When its settings were written; 0 where it has none."""
    number: int
    name: str
    task: str
    owner: str | None
    """None where nobody can be named: it is listed for nobody but who runs the server."""
    network: str = ""
    """Where its owner came from; empty where nobody has said."""


@dataclass(frozen=True)
class RunListing:
    """The runs of a folder at one time."""

    by_name: Mapping[str, RunFolder] = field(default_factory=dict)
    everybodys: Sequence[RunFolder] = ()
    by_owner: Mapping[str | None, Sequence[RunFolder]] = field(default_factory=dict)
    highest: Mapping[tuple[str | None, str], int] = field(default_factory=dict)
    aside: Sequence[RunFolder] = ()
    """Those that were deleted and can be brought back, by the names of their folders."""
    left_over: Sequence[str] = ()
    """Folders of runs that are not there yet, or no more."""

    def newest(self, owner: str | None = None) -> Sequence[RunFolder]:
        """The runs of this owner, or of everybody, the newest first."""
        return self.everybodys if owner is None else self.by_owner.get(owner, ())

    def next_number(self, task: str, owner: str) -> int:
        """One more than the highest number of this owner's runs of the task."""
        return 1 + self.highest.get((owner, task), 0)


class RunIndex:
    """The runs of one folder. Any thread may ask; one of them looks."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._guard = Lock()
        self._found = RunListing()
        self._seen = -1
        """The time of the folder when it was read; -1 where it may have changed within it."""

    def now(self) -> RunListing:
        """What is there now."""
        if self._seen != _changed(self._root):
            with self._guard:
                changed, begun = _changed(self._root), time.time_ns()
                if self._seen != changed:
                    self._found = self._read_anew()
                    self._seen = changed if begun - changed > SETTLED else -1
        return self._found

    def _read_anew(self) -> RunListing:
        before, left_over, aside = self._found, list[str](), list[str]()
        names = set()
        for name in _subfolders(self._root):
            if NAME.fullmatch(name):
                names.add(name)
            elif name.startswith((BEING_MADE, DELETED)):
                left_over.append(name)
            elif name.startswith(ASIDE) and NAME.fullmatch(name.removeprefix(ASIDE)):
                aside.append(name)
        # A folder that had no settings yet may have been on its way.
        known = {name: run for name, run in before.by_name.items() if run.began and name in names}
        is_same = left_over == before.left_over and aside == [run.name for run in before.aside]
        if is_same and len(known) == len(before.by_name) == len(names):
            return before
        new = (_run_folder(self._root, name) for name in names - known.keys())
        deleted = [_run_folder(self._root, name) for name in aside]
        return _listing(sorted([*known.values(), *new], reverse=True), deleted, left_over)


def index_of(root: Path | str) -> RunIndex:
    """The index of this folder of runs, one for the whole process."""
    return _index_of(os.path.abspath(root))


@lru_cache(maxsize=16)
def _index_of(root: str) -> RunIndex:
    return RunIndex(root)


def keep_order(spec: Path, there: RunListing) -> None:
    """Date the settings of a new run after those of the newest, though the clock was set back."""
    newest = there.everybodys[0].began if there.everybodys else 0
    began = spec.stat().st_mtime_ns
    if 0 <= newest - began < LARGEST_STEP_BACK:
        os.utime(spec, ns=(newest + 1, newest + 1))


def owner_in(folder: Path | str) -> str | None:
    """Whose the run in this folder is, as the folder says; None where it names nobody."""
    return maker_in(folder).owner


def maker_in(folder: Path | str) -> Maker:
    """The same, and where they came from."""
    if own_name(name := os.path.basename(folder)) == name:
        return Maker(HOST)
    try:
        with open(os.path.join(folder, OWNER_FILE), encoding="ascii") as file:
            said = file.read(100).split()
    except (OSError, UnicodeDecodeError):
        return Maker(None)
    if len(said) not in (1, 2) or not all(map(OWNER.fullmatch, said)):
        return Maker(None)
    return Maker(*said)


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
    found: Sequence[RunFolder], aside: Sequence[RunFolder], left_over: Sequence[str]
) -> RunListing:
    by_owner: dict[str | None, list[RunFolder]] = defaultdict(list)
    highest: Counter[tuple[str | None, str]] = Counter()
    for run in found:
        by_owner[run.owner].append(run)
    for run in (*found, *aside):  # one that is brought back finds its name free
        highest[run.owner, run.task] = max(highest[run.owner, run.task], run.number)
    by_name = {run.name: run for run in found}
    return RunListing(by_name, found, by_owner, highest, aside, left_over)


def _subfolders(root: str) -> Iterator[str]:
    entries: Iterable[os.DirEntry[str]]
    try:
        with os.scandir(root) as entries:
            yield from (each.name for each in entries if each.is_dir())
    except OSError:
        return


def _changed(root: str) -> int:
    """When entries of the folder came or went; 0 where there is none."""
    try:
        return os.stat(root).st_mtime_ns
    except OSError:
        return 0
