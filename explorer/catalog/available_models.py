"""The models that a reader can open: shipped, trained here, named at the start, or brought.

Listing a model reads its config, its training record and the names of its weights, of a small
file also the numbers. It is kept until the files on disk change, so that every page may list them
on every run. Only the runs that are listed are read: the newest of one reader.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from explorer.catalog import in_a_sentence
from explorer.catalog.folders import (
    brought_name,
    is_checkpoint,
    model_name,
    named_folders,
    own_name,
)
from explorer.catalog.model_descriptions import ANY_EXAMPLE, examples_for
from explorer.catalog.parameters import count_parameters
from explorer.catalog.pretrained_models import FIRST, PRETRAINED_MODELS
from explorer.catalog.run_index import SNAPSHOTS, index_of, run_of, step_folders
from explorer.system.data_folders import examples_root, recorded_root, runs_root, shipped_root
from explorer.tasks import CUSTOM_TASKS, TASKS
from models import TransformerConfig
from models.loading.checkpoint import CheckpointError, peek
from models.loading.folder_config import OURS
from models.loading.gguf_header import GGUF
from models.loading.inspection import check_inspection, inspect_folder
from models.loading.weight_files import ENDING, model_folder

SHOWN_FIRST = (
    "translation",
    "shakespeare",
    "reviews",
    "negation",
    "reverse",
    "induction",
    "induction-control",
    "induction-learned",
)
RUNS_LISTED = 50
"""The newest runs of one reader; the address of an older one still opens it."""
FILES_STAMPED = 1000
NUMBERS_CHECKED = 64_000_000
"""Bytes of weights that are read to list a model, so that none with NaN is chosen first."""
ENTRIES_KEPT, RUN_ENTRIES_KEPT = 512, 4096
WEIGHT_FILES = (ENDING, GGUF)
Stamp = tuple[tuple[str, int, int], ...]
TITLED = ("shipped", "added")
"""The origins of models that have a title; readers know their own by the names of the folders."""
TITLE_LIMIT, EXAMPLE_LIMIT, EXAMPLES_LIMIT = 80, 400, 24
"""A training record may come from anywhere, and its texts are shown in labels."""


@dataclass(frozen=True)
class ModelEntry:
    """One model of the list. `config` is None where `fault` says why it cannot be opened."""

    name: str
    title: str
    folder: Path
    config: TransformerConfig | None
    run: Mapping[str, Any]
    examples: tuple[str, ...] = ()
    parameters: int = 0
    fault: str | None = None
    origin: str = "shipped"
    """"shipped", "named" (by EXPLORER_MODELS), "added" (a downloaded model), "run" or
    "brought" (by this reader)."""
    family: str = OURS
    bytes: int = 0
    """Size of the weight files on disk."""

    @property
    def example(self) -> str:
        return self.examples[0] if self.examples else ANY_EXAMPLE


class ListedRun(NamedTuple):
    """A run whose model is listed: the finished one, or else its newest snapshot."""

    root: str
    name: str
    is_own: bool = True
    """Whether it is the reader's own: only the owner sees words of its training text."""


def list_models(
    root: Path | None = None, brought: Sequence[Path] = (), runs: Sequence[ListedRun] | None = None
) -> list[ModelEntry]:
    """Every model that can be opened; `brought` are folders that only this reader knows.

    The order is: the models that the reader brought, those that the start of the app named, the
    pretrained model that new readers meet, the shipped ones, other downloaded ones, then `runs` in
    their order, by default the newest under `root`, and the runs that come with the app. A name
    that is taken gets a number. A brought model takes no other's name: an address means the same
    model as before.
    """
    entries: dict[str, ModelEntry] = {}
    folders: set[str] = set()

    def free(name: str) -> str:
        names = (name if i == 1 else f"{name} ({i})" for i in range(1, len(entries) + 2))
        return next(name for name in names if name not in entries)

    def add(origin: str, name: str, folder: Path) -> None:
        if str(folder) not in folders:
            folders.add(str(folder))
            name = free(name)
            entries[name] = _entry(origin, name, folder, stamp_of(folder))

    for origin, name, folder in _folders():
        add(origin, name, folder)
    listed = newest_runs(root or runs_root()) if runs is None else runs
    for run in (*listed, *newest_runs(recorded_root())):
        place = f"{run.root}/{run.name}/checkpoint"
        stamp = _stamp_of_run(place)
        snapshots = () if stamp else step_folders(Path(run.root, run.name, SNAPSHOTS))
        if snapshots:
            place = str(snapshots[-1][1])
            stamp = _stamp_of_run(place)
        if stamp and place not in folders:
            name = free(run.name)
            entries[name] = _run_entry(name, place, stamp, run.is_own)
    for folder in brought:
        add("brought", brought_name(folder), folder)
    return sorted(entries.values(), key=lambda entry: entry.origin != "brought")


def newest_runs(root: Path) -> list[ListedRun]:
    """The newest runs of all readers, for whoever runs the server."""
    here = os.path.abspath(root)
    return [ListedRun(here, run.name) for run in index_of(here).now().newest()[:RUNS_LISTED]]


def brought_model(folder: Path) -> ModelEntry:
    return _entry("brought", brought_name(folder), folder, stamp_of(folder))


def _folders() -> Iterator[tuple[str, str, Path]]:
    """Origin, name and folder of everything that might be a model for all readers."""
    for folder in named_folders():
        yield "named", model_name(folder), folder
    downloaded = _subfolders(examples_root(), PRETRAINED_MODELS)
    first = [folder for folder in downloaded if folder.name == FIRST]
    shipped = filter(is_checkpoint, _subfolders(shipped_root(), SHOWN_FIRST))
    for origin, folders in (("added", first), ("shipped", shipped), ("added", downloaded)):
        for folder in folders:  # the first of the downloaded ones is listed once
            yield origin, folder.name, folder


def _subfolders(folder: Path, names: Iterable[str]) -> list[Path]:
    """The folders with these names, in this order, then the others by their names."""
    order = {name: place for place, name in enumerate(names)}
    _, inside, _ = next(os.walk(folder), ("", [], []))
    listed = sorted(inside, key=lambda name: (order.get(name, 99), name))
    return [folder / name for name in listed if name[0] != "."]


def stamp_of(folder: Path) -> Stamp:
    """Names, times and sizes of the files: once they change, a kept listing is stale.

    Those of the model that an adapter alone names count too.
    """
    with suppress(CheckpointError):
        if (base := model_folder(folder)) != folder:
            return (*_stamp_of_files(folder), *_stamp_of_files(base))
    return _stamp_of_files(folder)


def _stamp_of_files(folder: Path) -> Stamp:
    try:
        with os.scandir(folder) as files:
            return tuple(sorted(map(_stamp_of_file, islice(files, FILES_STAMPED))))
    except NotADirectoryError:  # a GGUF file
        return (_stamp_of_file(folder),)
    except OSError:
        return ()


def _stamp_of_file(file: os.DirEntry[str] | Path) -> tuple[str, int, int]:
    try:
        status = file.stat()
        return file.name, status.st_mtime_ns, status.st_size
    except OSError:
        return file.name, 0, 0


def entry_in(entry: ModelEntry, folder: Path) -> ModelEntry:
    """The same entry with the model of another folder, such as a snapshot of its training.

    If that model is damaged, opening it says why.
    """
    snapshot = _entry(entry.origin, entry.name, folder, stamp_of(folder))
    if snapshot.config is None:
        return replace(entry, folder=folder)
    return replace(snapshot, title=entry.title, examples=entry.examples)


def _stamp_of_run(folder: str) -> Stamp:
    """The stamp of a run's model, from its folder alone; empty if there is none.

    A run writes its model into another folder and renames that, so the files need no stamps.
    """
    try:
        status = os.stat(folder)
    except OSError:
        return ()
    return ((str(status.st_ino), status.st_mtime_ns, status.st_size),)


@lru_cache(maxsize=RUN_ENTRIES_KEPT)
def _run_entry(name: str, folder: str, stamp: Stamp, is_own: bool) -> ModelEntry:
    entry = _describe("run", name, Path(folder))
    if not is_own:
        return entry
    try:
        with (run_of(entry.folder) / "example").open(encoding="utf-8") as file:
            private = _texts([file.read(EXAMPLE_LIMIT)])
    except (OSError, UnicodeDecodeError):
        return entry
    return replace(entry, examples=tuple(dict.fromkeys([*private, *entry.examples])))


@lru_cache(maxsize=ENTRIES_KEPT)
def _entry(origin: str, name: str, folder: Path, stamp: Stamp) -> ModelEntry:
    """The entry of a folder, kept until the stamp of its files changes."""
    return _describe(origin, name, folder)


def _describe(origin: str, name: str, folder: Path) -> ModelEntry:
    short_name = own_name(name)
    try:
        config, run = peek(folder)
        family = OURS
        if origin in ("named", "brought", "added"):
            inspection = inspect_folder(folder)
            check_inspection(inspection)
            if inspection.bytes <= NUMBERS_CHECKED:
                with inspection.weights.open() as read_tensor:
                    for tensor in inspection.layouts:  # NaN or infinity is a CheckpointError
                        read_tensor(tensor)
            config, family = inspection.config, inspection.family
    except (CheckpointError, OSError) as error:
        fault = in_a_sentence(error)
        return ModelEntry(
            name, short_name, folder, None, {}, (), 0, fault, origin, bytes=_bytes(folder)
        )
    kind = str(run.get("task", name))
    task, custom_task = TASKS.get(kind), CUSTOM_TASKS.get(kind)
    title = task.title if task else custom_task.title if custom_task else short_name
    title = "".join(_texts([run.get("title")], TITLE_LIMIT)) or title
    has_title = origin in TITLED or folder.is_relative_to(recorded_root())
    recorded = _texts([run.get("example")]) + _texts(run.get("examples"))
    usual = examples_for(config, family, folder) if family != OURS and not recorded else ()
    examples = [*recorded, *(task.examples if task else usual)]
    return ModelEntry(
        name=name,
        title=title if has_title else short_name,
        folder=folder,
        config=config,
        run=run,
        examples=tuple(dict.fromkeys(examples)),
        parameters=count_parameters(config),
        origin=origin,
        family=family,
        bytes=_bytes(folder),
    )


def _bytes(folder: Path) -> int:
    try:
        files = [folder] if folder.is_file() else folder.iterdir()
        return sum(path.stat().st_size for path in files if path.suffix in WEIGHT_FILES)
    except OSError:
        return 0


def _texts(value: Any, longest: int = EXAMPLE_LIMIT) -> list[str]:
    """The texts of a record that anybody may have written: few, short, one line each."""
    texts = value[:EXAMPLES_LIMIT] if isinstance(value, list) else []
    lines = [" ".join(text.splitlines())[:longest] for text in texts if isinstance(text, str)]
    return [line for line in lines if line.strip()]
