"""A training run is a folder: one worker writes it, any number of pages read it.

    spec.json        the settings                status.json      step, speed, metric
    text             the reader's own text       control.json     the command to the worker
    metrics.jsonl    one line each step          lock             locked by the living worker
    snapshots/       weights at steps 0, 1, 2, 5, 10, 20, 50, …
    latest/          the newest weights          state/           what a resume starts from
    checkpoint/      the finished model, like any other

Every file and folder is written under another name and renamed, so nobody reads a
half-written one. The folder is all that is shared: a reloaded page, a restarted server and
a second machine find everything here.
"""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

from explorer.runs.metrics import Metrics
from explorer.runs.run_files import Lock, is_held, read_json_object, write_json, write_text
from explorer.runs.spec import INTERRUPTED, TRAINING, RunSpec, Status

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
STEP_NAME = re.compile(r"step-(\d{6,12})")
COMMANDS = ("train", "pause", "resume", "step", "stop", "leave")


class RunError(ValueError):
    """A run cannot be made or read; the message is one sentence."""


class Run:
    """One run folder: only its path, everything else is read from disk."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder).absolute()

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def spec(self) -> RunSpec:
        try:
            return RunSpec.from_dict(read_json_object(self.folder / "spec.json"))
        except OSError as error:
            raise RunError(f"There is no run in the folder {self.name}.") from error
        except (ValueError, TypeError) as error:
            raise RunError(f"The run {self.name} cannot be read: {error}") from error

    def text(self) -> str | None:
        """The text the run learns from, where its task needs one."""
        try:
            return (self.folder / "text").read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise RunError(f"The text of the run {self.name} cannot be read.") from error

    def status(self) -> Status:
        """The status of the run; interrupted where it trains without a living worker."""
        status = self.status_as_written()
        if status.state == TRAINING and not self.has_worker():
            # Read once more: the worker may have written its last status before it unlocked.
            status = self.status_as_written()
            if status.state == TRAINING and not self.has_worker():
                return status.replace(state=INTERRUPTED, steps_per_second=0.0)
        return status

    def status_or_new(self) -> Status:
        """The same, or that of a run which has none that can be read."""
        try:
            return self.status()
        except RunError:
            return Status()

    def status_as_written(self) -> Status:
        """The status that the last worker wrote, living or not."""
        try:
            return Status.from_dict(read_json_object(self.folder / "status.json"))
        except OSError as error:
            raise RunError(f"There is no run in the folder {self.name}.") from error
        except (ValueError, TypeError) as error:
            raise RunError(f"The status of the run {self.name} cannot be read.") from error

    def has_worker(self) -> bool:
        """Whether a living process is training this run."""
        return is_held(self.folder / "lock")

    def metrics(self) -> Metrics:
        """The metrics so far; `update` it to follow the run."""
        return Metrics(self.folder / "metrics.jsonl").update()

    def command(self, word: str) -> None:
        """Send a command to the worker: pause, resume, step (one update, then pause), stop."""
        if word not in COMMANDS:
            raise RunError(f"A run has no command {word!r}.")
        write_json(self.folder / "control.json", {"command": "train" if word == "resume" else word})

    def commanded(self) -> str:
        """The last command to the worker."""
        try:
            word = read_json_object(self.folder / "control.json").get("command")
        except (OSError, ValueError):
            return "train"
        return str(word) if word in COMMANDS else "train"

    def mark(self, state: str) -> None:
        """Set the state between two workers; the status of a living one is not touched."""
        with Lock(self.folder / "lock") as lock:
            if lock.acquire(patience=2.0):
                status = self.status_as_written().replace(state=state, message="")
                write_json(self.folder / "status.json", status.to_dict())

    def snapshots(self) -> list[tuple[int, Path]]:
        """Step and checkpoint folder of every snapshot, the first one first."""
        return step_folders(self.folder / "snapshots")

    def latest(self) -> Path | None:
        """The checkpoint folder of the newest weights there are."""
        kept = [*self.snapshots(), *step_folders(self.folder / "latest")]
        return max(kept)[1] if kept else None

    def checkpoint(self) -> Path | None:
        """The finished model, when there is one."""
        folder = self.folder / "checkpoint"
        return folder if (folder / "config.json").exists() else None


def create(root: Path, spec: RunSpec, text: str | None = None) -> Run:
    """A new run, waiting for its worker, in the next free folder named after its task."""
    if fault := spec.fault():
        raise RunError(fault)
    if not NAME.fullmatch(spec.task):
        raise RunError(f"There is no task called {spec.task[:60]!r}.")
    root = Path(root).absolute()
    beside = root / f".new-{uuid.uuid4().hex}"
    try:
        beside.mkdir(parents=True)
        write_json(beside / "spec.json", spec.to_dict())
        write_json(beside / "status.json", Status(steps=spec.training.steps).to_dict())
        if text is not None:
            write_text(beside / "text", text)
        return Run(_put_in_place(beside, root, spec.task))
    except OSError as error:
        raise RunError(f"The run cannot be written in {root}: {error.strerror}.") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def create_in(folder: Path, spec: RunSpec, text: str | None = None) -> Run:
    """A new run in exactly this folder, which must not exist or be empty."""
    if not NAME.fullmatch(folder.name):
        raise RunError("A run's folder is named with letters, digits, dashes and underscores only.")
    made = create(folder.parent, spec, text)
    try:
        made.folder.rename(folder)
    except OSError as error:
        shutil.rmtree(made.folder, ignore_errors=True)
        raise RunError(f"The folder {folder} is not empty.") from error
    return Run(folder)


def run_named(root: Path, name: str) -> Run:
    """The run called `name`. RunError for anything else, such as a path."""
    if not NAME.fullmatch(name) or not (Path(root) / name / "spec.json").is_file():
        raise RunError(f"There is no run called {name[:60]!r}.")
    return Run(Path(root) / name)


def all_runs(root: Path) -> list[Run]:
    """Every run under `root`, the newest first; a damaged one raises when it is read."""
    return sorted(_runs_in(Path(root)), key=_began, reverse=True)


def step_folders(folder: Path) -> list[tuple[int, Path]]:
    """The subfolders called step-000123 with their steps, the smallest step first."""
    try:
        found = [(STEP_NAME.fullmatch(path.name), path) for path in folder.iterdir()]
    except OSError:
        return []
    return sorted((int(match[1]), path) for match, path in found if match)


def step_folder(folder: Path, step: int) -> Path:
    return folder / f"step-{step:06d}"


def _put_in_place(beside: Path, root: Path, task: str) -> Path:
    number = 1 + max((_number(run.name, task) for run in _runs_in(root)), default=0)
    while True:
        try:
            return beside.rename(root / f"{task[:50].rstrip('-')}-{number}")
        except OSError:
            if not (root / f"{task[:50].rstrip('-')}-{number}").exists():
                raise
            number += 1


def _number(name: str, task: str) -> int:
    stem, _, number = name.rpartition("-")
    return int(number) if stem == task and number.isdecimal() else 0


def _runs_in(root: Path) -> Iterator[Run]:
    try:
        folders = list(root.iterdir())
    except OSError:
        return
    for folder in folders:
        if NAME.fullmatch(folder.name) and (folder / "spec.json").is_file():
            yield Run(folder)


def _began(run: Run) -> tuple[int, str]:
    try:
        return (run.folder / "spec.json").stat().st_mtime_ns, run.name
    except OSError:
        return 0, run.name
