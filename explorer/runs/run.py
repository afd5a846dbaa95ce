"""A training run is a folder: one worker writes it, any number of pages read it.

    spec.json        the settings                status.json      step, speed, metric
    text             the reader's own text       control.json     the command to the worker
    owner            whose, and their network    example          a text to begin with, for them
    tokenizer.json   the tokenizer of that text, where it is not the task's usual one
    metrics.jsonl    one line each step          lock             locked by the living worker
    requested.json   settings to apply       changes.jsonl    applied settings, with their steps
    refused.json     why the last request was not applied
    snapshots/       weights at steps 0, 1, 2, 3, 5, 7, 10, 15, 20, …
    latest/          the newest weights          state/           what a resume starts from
    parent/          the model that it starts from, where that was trained before
    checkpoint/      the finished model            notes.json       tags, a note, its sweep

Every file and folder is written under another name and renamed, so nobody reads an incomplete one.
Pages and workers share nothing but the folder: a reloaded page, a restarted server and a second
machine find everything here. Only the account that wrote it can read it.

The runs of whoever runs the server have plain names, such as reverse-1. The name of another
owner's run ends in a key that nobody can guess: it is in the address of a link, never on screen.
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
from explorer.catalog.opened_model import OpenModel, open_checkpoint
from explorer.catalog.run_index import (
    BEING_MADE,
    HOST,
    NAME,
    OWNER_FILE,
    SNAPSHOTS,
    RunListing,
    index_of,
    keep_order,
    maker_in,
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
from explorer.system.data_folders import runs_root
from explorer.tasks import CUSTOM_TASKS, Task, task_of
from explorer.tasks.bundled_text import BundledText
from explorer.tasks.task import check_fit
from explorer.text import TextError
from models.loading.safe_files import quoted

TOKENIZER = "tokenizer.json"
COMMANDS = ("train", "pause", "resume", "step", "stop", "leave")
LONGEST_SENTENCE = 300
LONGEST_TASK, LONGEST_WITH_KEY = 50, 24
"""Letters of a task in the name of a run, which has at most 64."""


class Run:
    """One run, by the path of its folder; everything else is read from disk."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder).absolute()

    @property
    def name(self) -> str:
        """Its name in an address and on disk."""
        return self.folder.name

    @property
    def title(self) -> str:
        """Its name on screen: without a key."""
        return own_name(self.name)

    @property
    def owner(self) -> str | None:
        """Its owner; empty for whoever runs the server."""
        return maker_in(self.folder).owner

    @property
    def is_private(self) -> bool:
        """Whether it is trained on a text of somebody other than whoever runs the server."""
        return self.owner != HOST and (self.folder / "text").exists() and not self.bundled

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
        """The text that the run is trained on, if its task needs one."""
        return self._own("text")

    @property
    def bundled(self) -> BundledText | None:
        """The text that comes with the app, if it is trained on that."""
        try:
            task = CUSTOM_TASKS.get(self.spec.task)
            return task.bundled if task and self.text() == task.bundled.text else None
        except RunError:
            return None

    def tokenizer(self) -> str | None:
        """The tokenizer.json for this text, if it is not the task's usual one."""
        return self._own(TOKENIZER)

    def task(self) -> Task:
        """Its task. TextError if the files in the folder do not make one."""
        spec, text = self.spec, self.text()
        if text is None and spec.task in CUSTOM_TASKS:
            raise TextError(f"The text of the run {self.title} is missing.")
        if spec.parent:
            task = task_in(self.folder / PARENT, spec.task, text)
        else:
            task = task_of(spec.task, text, self.tokenizer())
        check_fit(task, spec.model)
        return task

    def status(self) -> Status:
        """The status of the run; "interrupted" if it is training without a living worker."""
        status = self.status_as_written()
        if status.state == TRAINING and not self.has_worker():
            # Read it again: the worker may have written its last status before it unlocked.
            status = self.status_as_written()
            if status.state == TRAINING and not self.has_worker():
                return status.replace(state=INTERRUPTED, steps_per_second=0.0)
        return status

    def status_or_new(self) -> Status:
        """The status of the run, or a new one if it cannot be read."""
        try:
            return self.status()
        except RunError:
            return Status()

    def status_as_written(self) -> Status:
        """The status that the last worker wrote, living or not."""
        try:
            values = read_json_object(self.folder / "status.json")
            names = {field.name for field in dataclasses.fields(Status)}  # others: a newer version
            return Status.from_dict({name: values[name] for name in values.keys() & names})
        except OSError as error:
            raise RunError(f"There is no run in the folder {self.title}.") from error
        except (ValueError, TypeError) as error:
            raise RunError(
                f"The status of the run {self.title} cannot be read: delete the run, or restore "
                "its file status.json."
            ) from error

    def notes(self) -> RunNotes:
        """The reader's notes of the run."""
        return notes_in(self.folder)

    def note(self, notes: RunNotes) -> None:
        """Replace the notes of the run."""
        try:
            write_notes(self.folder, notes)
        except OSError as error:
            raise RunError.of(error, f"Nothing can be noted of the run {self.title}") from error

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
        command = "train" if word == "resume" else word
        try:
            write_json(self.folder / "control.json", {"command": command})
        except OSError as error:
            raise RunError.of(error, f"The run {self.title} cannot be told to {word}") from error

    def last_command(self) -> str:
        """The last command to the worker."""
        word = read_json_or_empty(self.folder / "control.json").get("command")
        return str(word) if word in COMMANDS else "train"

    def change(self, **values: Any) -> None:
        """Request these values of `spec.HOT_VALUES`, to apply after its next step.

        RunError if the run is done, or a value is invalid. The last request counts.
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

    def requested_values(self) -> dict[str, Any]:
        """The values that are requested and not applied yet."""
        return hot_changes.requested_values(self.folder)

    def refusal(self) -> str:
        """Why the last request was not applied; empty if it was."""
        return hot_changes.refusal(self.folder)

    def changes(self) -> list[Change]:
        """The values that changed as it trained, each with the step after which they did."""
        return hot_changes.changes(self.folder)

    def spec_now(self) -> RunSpec:
        """Its settings with the changes that are in force at its newest step."""
        return hot_changes.spec_at(self.spec, self.changes(), self.status_or_new().step)

    def stop_for(self, why: str) -> None:
        """Stop it for good at a limit, with the limit's sentence, until somebody resumes it.

        The command has the sentence too, for the next process that would continue the run.
        """
        write_json(self.folder / "control.json", {"command": "stop", "why": why})
        self.end_as(STOPPED, why)

    def stop_reason(self) -> str:
        """The sentence of the limit that stopped it; empty if none did."""
        why = read_json_or_empty(self.folder / "control.json").get("why")
        return why[:LONGEST_SENTENCE] if isinstance(why, str) else ""

    def end_as(self, state: str, message: str) -> None:
        """Write the state and message with which its training ended; for the worker."""
        ended = self.status_or_new().replace(state=state, message=message, steps_per_second=0.0)
        write_json(self.folder / "status.json", ended.to_dict())

    def mark(self, state: str) -> None:
        """Set the state while no worker trains it; a living worker's status stays."""
        with Lock(self.folder / "lock") as lock:
            if lock.acquire(patience=2.0):
                status = self.status_as_written().replace(state=state, message="")
                write_json(self.folder / "status.json", status.to_dict())

    def snapshots(self) -> list[tuple[int, Path]]:
        """Step and checkpoint folder of every snapshot, the earliest first."""
        return step_folders(self.folder / SNAPSHOTS)

    def latest(self) -> Path | None:
        """The checkpoint folder of its newest weights, if there are any."""
        folders = [*self.snapshots(), *step_folders(self.folder / "latest")]
        return max(folders)[1] if folders else None

    def checkpoint(self) -> Path | None:
        """The finished model, when there is one."""
        folder = self.folder / "checkpoint"
        return folder if (folder / "config.json").exists() else None

    def _own(self, name: str) -> str | None:
        """The contents of the reader's file of this name; None if there is none."""
        try:
            return (self.folder / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise RunError(f"The {name} of the run {self.title} cannot be read.") from error


def room_fault(root: Path, specs: Sequence[RunSpec], owner: str, network: str = "") -> str | None:
    """Why the owner has no room for these runs, after erasing their deleted ones if needed."""
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
    """Create a run that waits for its worker, in the next free folder named after its task.

    `tokenizer` is a whole tokenizer.json, if not the task's usual one; `parent` is the model that
    the spec starts from, or the folder `parent/` of a run that starts from the same model. With an
    `owner`, who may come from a `network`, the name has a key. RunError if there are too many runs.
    """
    if fault := spec.fault():
        raise RunError(fault)
    if not NAME.fullmatch(spec.task):
        raise RunError(f"There is no task called {spec.task[:60]!r}.")
    root = Path(root).absolute()
    new = root / f"{BEING_MADE}{uuid.uuid4().hex}"
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        sweep(root)
        if fault := room_fault(root, [spec], owner, network):
            raise RunError(fault)
        there = index_of(root).now()
        new.mkdir(mode=0o700)
        write_json(new / "spec.json", spec.to_dict())
        write_json(new / "status.json", Status(steps=spec.training.steps).to_dict())
        if text is not None:
            write_text(new / "text", text)
        if tokenizer is not None:
            write_text(new / TOKENIZER, tokenizer)
        if isinstance(parent, Path):
            link_parent(parent, new / PARENT)
        elif parent is not None:
            write_parent(new / PARENT, parent, spec)
        if owner:
            write_text(new / OWNER_FILE, f"{owner} {network}".strip())
        if notes is not None:
            write_notes(new, notes)
        keep_order(new / "spec.json", there)
        return Run(_put_in_place(new, root, spec.task, there, owner))
    except OSError as error:
        raise RunError.of(error, "The run cannot be written") from error
    finally:
        shutil.rmtree(new, ignore_errors=True)


def create_in(
    folder: Path,
    spec: RunSpec,
    text: str | None = None,
    tokenizer: str | None = None,
    parent: OpenModel | None = None,
) -> Run:
    """Create a run in exactly this folder, which must be empty or not exist.

    The folders beside it count for no quota, except in the app's folder of runs.
    """
    if not NAME.fullmatch(folder.name):
        raise RunError("A run's folder is named with letters, digits, dashes and underscores only.")
    root = folder.absolute().parent
    if root.resolve() != runs_root().resolve():
        root = root / f"{BEING_MADE}{uuid.uuid4().hex}"
    try:
        run = create(root, spec, text, tokenizer=tokenizer, parent=parent)
        try:
            run.folder.rename(folder)
        except OSError as error:
            shutil.rmtree(run.folder, ignore_errors=True)
            raise RunError(
                f"{folder.name} is a file or a folder that is not empty: name another."
            ) from error
    finally:
        if root != folder.absolute().parent:
            shutil.rmtree(root, ignore_errors=True)
    return Run(folder)


def delete(run: Run) -> None:
    """Delete a run; for a while `restore` can bring it back, see `deleting`."""
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
    """The error where there is no such run, or none that this reader may see."""
    title = quoted(own_name(name))
    return RunError(f"There is no run called “{title}” here; choose another or start one.")


def newest_runs(root: Path, most: int | None, owner: str | None = None) -> list[Run]:
    """The newest runs of this owner, or of all; reading a damaged one raises."""
    listed = index_of(root).now().newest(owner)[:most]
    return [Run(Path(root) / run.name) for run in listed if run.began]


def all_runs(root: Path) -> list[Run]:
    """Every run under `root`, the newest first; reading a damaged one raises."""
    return newest_runs(root, None)


def step_folder(folder: Path, step: int) -> Path:
    return folder / f"step-{step:06d}"


def _put_in_place(new: Path, root: Path, task: str, there: RunListing, owner: str) -> Path:
    stem = task[: LONGEST_WITH_KEY if owner else LONGEST_TASK].rstrip("-")
    key = f"-{RUN_KEY}{secrets.token_hex(12)}" if owner else ""
    number = there.next_number(stem, owner)
    while True:
        place = root / f"{stem}-{number}{key}"
        try:
            return new.rename(place)
        except OSError:
            if not place.exists():
                raise
            number += 1


def open_folder(folder: Path) -> OpenModel:
    """The model in a checkpoint folder, or the newest one in a run's folder.

    It is read from disk each time: a training soon replaces its weights. ModelError says in a
    sentence why nothing can be opened.
    """
    folder = Path(folder).absolute()
    return open_checkpoint(newest_in(folder), folder.name)


def newest_in(folder: Path) -> Path:
    """The checkpoint folder of the newest weights of a run; any other folder is returned as is."""
    if not (folder / "spec.json").is_file():
        return folder
    run = Run(folder)
    newest = run.checkpoint() or run.latest()
    if newest is None:
        raise ModelError(f"The run {folder.absolute().name} has no weights yet.")
    return newest
