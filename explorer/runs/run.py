"""A training run is a folder: one worker writes it, any number of pages read it.

    spec.json        the settings                status.json      step, speed, metric
    text             the reader's own text       control.json     the command to the worker
    owner            whose, and their network    example          a text to begin with, for them
    tokenizer.json   the tokenizer of that text, where it is not the task's usual one
    metrics.jsonl    one line each step          lock             locked by the living worker
    requested.json   settings to take on     changes.jsonl    those taken on, and at which step
    refused.json     why the last were not taken on
    snapshots/       weights at steps 0, 1, 2, 3, 5, 7, 10, 15, 20, …
    latest/          the newest weights          state/           what a resume starts from
    parent/          the model that it starts from, where that was trained before
    checkpoint/      the finished model            notes.json       tags, a note, its sweep

Every file and folder is written under another name and renamed, so nobody reads a
half-written one. The folder is all that is shared: a reloaded page, a restarted server and
a second machine find everything here. It is readable by the account that wrote it alone.

Whoever runs the server makes runs with plain names, such as reverse-1. The name of anybody
else's ends in a key that nobody can guess: it is in the address of a link, and never on screen.
"""

import dataclasses
import secrets
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from explorer.catalog import ModelError
from explorer.catalog.folders import RUN_KEY, own_name
from explorer.catalog.opened_model import OpenModel, opened_from
from explorer.catalog.run_index import (
    BEING_MADE,
    HOST,
    NAME,
    OWNER_FILE,
    SNAPSHOTS,
    RunListing,
    index_of,
    keep_order,
    owner_in,
    step_folders,
)
from explorer.runs import hot_changes
from explorer.runs.deleting import bring_back, make_room, set_aside, sweep
from explorer.runs.finetuning import PARENT, link_parent, task_in, write_parent
from explorer.runs.hot_changes import Change
from explorer.runs.metrics import Metrics
from explorer.runs.quotas import closing_bytes, keeping_fault
from explorer.runs.spec import (
    DONE,
    INTERRUPTED,
    STOPPED,
    TRAINING,
    RunError,
    RunNotes,
    RunSpec,
    Status,
    notes_in,
    write_notes,
)
from explorer.system.atomic_files import (
    Lock,
    is_held,
    read_json_object,
    read_json_or_empty,
    write_json,
    write_text,
)
from explorer.tasks import Task, task_of
from models.config import TrainConfig
from models.loading.safe_files import shown

TOKENIZER = "tokenizer.json"
COMMANDS = ("train", "pause", "resume", "step", "stop", "leave")
LONGEST_SENTENCE = 300
LONGEST_TASK, LONGEST_WITH_KEY = 50, 24
"""Letters of a task in the name of a run, which has 64 at most."""


class Run:
    """One run folder: only its path, everything else is read from disk."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder).absolute()

    @property
    def name(self) -> str:
        """What finds it, in an address and on disk."""
        return self.folder.name

    @property
    def title(self) -> str:
        """What it is called on screen: its name without a key."""
        return own_name(self.name)

    @property
    def owner(self) -> str | None:
        """Whose it is; empty for who runs the server."""
        return owner_in(self.folder)

    @property
    def is_private(self) -> bool:
        """Whether somebody else than who runs the server gave the text that it learns from."""
        return self.owner != HOST and (self.folder / "text").exists()

    @property
    def spec(self) -> RunSpec:
        try:
            return RunSpec.from_dict(read_json_object(self.folder / "spec.json"))
        except OSError as error:
            raise RunError(f"There is no run in the folder {self.title}.") from error
        except (ValueError, TypeError) as error:
            raise RunError(f"The run {self.title} cannot be read: {error}") from error

    def is_readable(self) -> bool:
        """Whether its settings can be read."""
        try:
            return bool(self.spec)
        except RunError:
            return False

    def text(self) -> str | None:
        """The text the run learns from, where its task needs one."""
        return self._own("text")

    def tokenizer(self) -> str | None:
        """The tokenizer.json that reads this text, where it is not the task's usual one."""
        return self._own(TOKENIZER)

    def task(self) -> Task:
        """What it learns. TextError where that cannot be made of what the folder holds."""
        spec = self.spec
        if spec.parent:
            return task_in(self.folder / PARENT, spec.task, self.text())
        return task_of(spec.task, self.text(), self.tokenizer())

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
            values = read_json_object(self.folder / "status.json")
            known = {field.name for field in dataclasses.fields(Status)}  # others: a newer version
            return Status.from_dict({name: values[name] for name in values.keys() & known})
        except OSError as error:
            raise RunError(f"There is no run in the folder {self.title}.") from error
        except (ValueError, TypeError) as error:
            raise RunError(f"The status of the run {self.title} cannot be read.") from error

    def notes(self) -> RunNotes:
        """What was noted of it."""
        return notes_in(self.folder)

    def note(self, notes: RunNotes) -> None:
        """Replace what is noted of it."""
        try:
            write_notes(self.folder, notes)
        except OSError as error:
            raise RunError.of(error, f"Nothing can be noted of the run {self.title}") from error

    def has_worker(self) -> bool:
        """Whether a living process is training this run."""
        return is_held(self.folder / "lock")

    def has_trained(self) -> bool:
        """Whether there is a trace of any update."""
        rows = self.metrics().rows
        return self.status_or_new().step > 0 or any(row.step > 0 for row in rows)

    def metrics(self) -> Metrics:
        """The metrics so far; `update` it to follow the run."""
        return Metrics(self.folder / "metrics.jsonl").update()

    def command(self, word: str) -> None:
        """Send a command to the worker: pause, resume, step (one update, then pause), stop."""
        if word not in COMMANDS:
            raise RunError(f"A run has no command {word!r}.")
        said = {"command": "train" if word == "resume" else word}
        try:
            write_json(self.folder / "control.json", said)
        except OSError as error:
            raise RunError.of(error, f"The run {self.title} cannot be told to {word}") from error

    def commanded(self) -> str:
        """The last command to the worker."""
        word = read_json_or_empty(self.folder / "control.json").get("command")
        return str(word) if word in COMMANDS else "train"

    def change(self, **values: Any) -> None:
        """Ask it to take on these values of `spec.HOT_VALUES` after its next step.

        RunError where it is done, or they are none. Of two who ask, the last one counts.
        """
        spec = self.spec
        if self.status_or_new().state == DONE:
            raise RunError(f"The run {self.title} is done: start another one with these settings.")
        try:
            hot_changes.request(self.folder, spec, values)
        except OSError as error:
            raise RunError.of(error, f"The run {self.title} cannot be changed") from error
        except ValueError as error:
            raise RunError(str(error)) from error

    def requested(self) -> dict[str, Any]:
        """The values that it was asked for and has not taken on yet."""
        return hot_changes.requested(self.folder)

    def refusal(self) -> str:
        """Why it has not taken on the last values that it was asked for; empty where it has."""
        return hot_changes.refusal(self.folder)

    def changes(self) -> list[Change]:
        """The values that it has taken on, each with the step after which it did."""
        return hot_changes.changes(self.folder)

    def spec_now(self) -> RunSpec:
        """Its settings with the changes that are in force at its newest step."""
        return hot_changes.spec_at(self.spec, self.changes(), self.status_or_new().step)

    def training_now(self) -> TrainConfig:
        """How it is trained at its newest step."""
        return self.spec_now().training

    def stop_for(self, why: str) -> None:
        """Stop it for good by a limit, whose sentence this is: until somebody tells it to resume.

        The command has the sentence too, for the next process that would go on with the run.
        """
        write_json(self.folder / "control.json", {"command": "stop", "why": why})
        self.end_as(STOPPED, why)

    def stopped_for(self) -> str:
        """The sentence of the limit that has stopped it; empty where none has."""
        why = read_json_or_empty(self.folder / "control.json").get("why")
        return why[:LONGEST_SENTENCE] if isinstance(why, str) else ""

    def end_as(self, state: str, message: str) -> None:
        """Write how its training ended; for the process that has trained it."""
        ended = self.status_or_new().replace(state=state, message=message, steps_per_second=0.0)
        write_json(self.folder / "status.json", ended.to_dict())

    def mark(self, state: str) -> None:
        """Set the state between two workers; the status of a living one is not touched."""
        with Lock(self.folder / "lock") as lock:
            if lock.acquire(patience=2.0):
                status = self.status_as_written().replace(state=state, message="")
                write_json(self.folder / "status.json", status.to_dict())

    def snapshots(self) -> list[tuple[int, Path]]:
        """Step and checkpoint folder of every snapshot, the first one first."""
        return step_folders(self.folder / SNAPSHOTS)

    def latest(self) -> Path | None:
        """The checkpoint folder of the newest weights there are."""
        kept = [*self.snapshots(), *step_folders(self.folder / "latest")]
        return max(kept)[1] if kept else None

    def checkpoint(self) -> Path | None:
        """The finished model, when there is one."""
        folder = self.folder / "checkpoint"
        return folder if (folder / "config.json").exists() else None

    def _own(self, name: str) -> str | None:
        """What the reader gave, from a file of this name; None where there is none."""
        try:
            return (self.folder / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise RunError(f"The {name} of the run {self.title} cannot be read.") from error


def room_fault(root: Path, specs: Sequence[RunSpec], owner: str, network: str = "") -> str | None:
    """Why so many runs of this owner are not kept together; what they deleted makes room first."""
    size, count = sum(map(closing_bytes, specs)), len(specs)
    fault = keeping_fault(root, owner, network, size, count)
    if fault and make_room(root, owner):
        fault = keeping_fault(root, owner, network, size, count)
    return fault


def create(
    root: Path,
    spec: RunSpec,
    text: str | None = None,
    owner: str = HOST,
    network: str = "",
    notes: RunNotes | None = None,
    tokenizer: str | None = None,
    parent: OpenModel | Path | None = None,
) -> Run:
    """A new run, waiting for its worker, in the next free folder named after its task.

    `tokenizer` is a whole tokenizer.json, where it is not the usual one of the task; `parent` the
    model that the spec starts from, or the folder `parent/` of a run that began as this one does.
    With an `owner`, who may come from a `network`, the name has a key. RunError where there
    are too many already.
    """
    if fault := spec.fault():
        raise RunError(fault)
    if not NAME.fullmatch(spec.task):
        raise RunError(f"There is no task called {spec.task[:60]!r}.")
    root = Path(root).absolute()
    beside = root / f"{BEING_MADE}{uuid.uuid4().hex}"
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        sweep(root)
        if fault := room_fault(root, [spec], owner, network):
            raise RunError(fault)
        there = index_of(root).now()
        beside.mkdir(mode=0o700)
        write_json(beside / "spec.json", spec.to_dict())
        write_json(beside / "status.json", Status(steps=spec.training.steps).to_dict())
        if text is not None:
            write_text(beside / "text", text)
        if tokenizer is not None:
            write_text(beside / TOKENIZER, tokenizer)
        if isinstance(parent, Path):
            link_parent(parent, beside / PARENT)
        elif parent is not None:
            write_parent(beside / PARENT, parent, spec)
        if owner:
            write_text(beside / OWNER_FILE, f"{owner} {network}".strip())
        if notes is not None:
            write_notes(beside, notes)
        keep_order(beside / "spec.json", there)
        return Run(_put_in_place(beside, root, spec.task, there, owner))
    except OSError as error:
        raise RunError.of(error, "The run cannot be written") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def create_in(
    folder: Path,
    spec: RunSpec,
    text: str | None = None,
    tokenizer: str | None = None,
    parent: OpenModel | None = None,
) -> Run:
    """A new run in exactly this folder, which must not exist or be empty."""
    if not NAME.fullmatch(folder.name):
        raise RunError("A run's folder is named with letters, digits, dashes and underscores only.")
    made = create(folder.parent, spec, text, tokenizer=tokenizer, parent=parent)
    try:
        made.folder.rename(folder)
    except OSError as error:
        shutil.rmtree(made.folder, ignore_errors=True)
        raise RunError(f"The folder {folder.name} is not empty.") from error
    return Run(folder)


def delete(run: Run) -> None:
    """Take a run away, to be brought back by `restore` within a while; see `deleting`."""
    if not (run.folder / "spec.json").is_file():
        raise RunError(f"There is no run in the folder {run.title}.")
    try:
        set_aside(run.folder)
    except OSError as error:
        raise RunError.of(error, f"The run {run.title} cannot be deleted") from error


def restore(root: Path, name: str) -> Run:
    """Bring a deleted run back, as it was."""
    if not NAME.fullmatch(name):
        raise no_run_named(name)
    try:
        bring_back(root, name)
    except FileNotFoundError as error:
        raise RunError(f"The run {own_name(name)} is gone for good.") from error
    except OSError as error:
        raise RunError.of(error, f"The run {own_name(name)} cannot be brought back") from error
    return Run(root / name)


def run_named(root: Path, name: str) -> Run:
    """The run called `name`. RunError for anything else, such as a path."""
    if not NAME.fullmatch(name) or not (Path(root) / name / "spec.json").is_file():
        raise no_run_named(name)
    return Run(Path(root) / name)


def no_run_named(name: str) -> RunError:
    """What to raise where nobody, or not this reader, may find one."""
    called = shown(own_name(name))
    return RunError(f"There is no run called “{called}” here; choose another or start one.")


def newest_runs(root: Path, most: int | None, owner: str | None = None) -> list[Run]:
    """The newest runs of this owner, or of everybody; a damaged one raises when it is read."""
    found = index_of(root).now().newest(owner)[:most]
    return [Run(Path(root) / each.name) for each in found if each.began]


def all_runs(root: Path) -> list[Run]:
    """Every run under `root`, the newest first; a damaged one raises when it is read."""
    return newest_runs(root, None)


def step_folder(folder: Path, step: int) -> Path:
    return folder / f"step-{step:06d}"


def _put_in_place(beside: Path, root: Path, task: str, there: RunListing, owner: str) -> Path:
    stem = task[: LONGEST_WITH_KEY if owner else LONGEST_TASK].rstrip("-")
    key = f"-{RUN_KEY}{secrets.token_hex(12)}" if owner else ""
    number = there.next_number(stem, owner)
    while True:
        place = root / f"{stem}-{number}{key}"
        try:
            return beside.rename(place)
        except OSError:
            if not place.exists():
                raise
            number += 1


def open_folder(folder: Path) -> OpenModel:
    """The model in a checkpoint folder, or the newest one in a run's folder.

    It is read anew: weights of a running training are soon replaced. ModelError
    says in a sentence why there is nothing to open.
    """
    folder = Path(folder).absolute()
    return opened_from(newest_in(folder), folder.name)


def newest_in(folder: Path) -> Path:
    """The checkpoint folder of the newest weights of a run; any other folder as it is."""
    if not (folder / "spec.json").is_file():
        return folder
    run = Run(folder)
    newest = run.checkpoint() or run.latest()
    if newest is None:
        raise ModelError(f"The run {folder.absolute().name} has no weights yet.")
    return newest
