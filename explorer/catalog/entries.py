"""The models a reader can open: those that ship, those trained here, and those of others.

Looking a model up reads only its config, how it was made and the names of its weights;
the weights are read when it is opened. Both are kept until the files on disk change, so
every page may ask for them on every run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any

import torch
from cachetools import LRUCache, cached

from explorer.catalog import places
from explorer.catalog.added_examples import examples_root
from explorer.catalog.examples import examples_for
from explorer.catalog.tokenizers import tokenizer_of
from explorer.tasks import GIVEN, TASKS, Task
from explorer.text import AnyTokenizer, TextError
from models import Transformer, TransformerConfig, load_checkpoint
from models.loading.checkpoint import Checkpoint, CheckpointError, peek
from models.loading.contents import check, inspect
from models.loading.described import OURS

ROOT = Path(__file__).resolve().parents[2]
SHOWN_FIRST = (
    "translation",
    "shakespeare",
    "reviews",
    "negation",
    "reverse",
    "induction",
    "induction-control",
)
FILES_STAMPED = 1000
Stamp = tuple[tuple[str, int, int], ...]
ANY_EXAMPLE = "To be, or not to be"
WEIGHTS_KEPT = 4_000_000_000
"""Bytes of all opened models together; the largest one may still be opened alone."""
TITLE_LIMIT, EXAMPLE_LIMIT, EXAMPLES_LIMIT = 80, 400, 24
"""A record may have come from anywhere, and its words are shown in labels."""


class LibraryError(ValueError):
    """A model cannot be opened; the message is one sentence for the reader."""


@dataclass(frozen=True)
class Entry:
    """One model on the shelf. `config` is None when `fault` says why it cannot be opened."""

    name: str
    title: str
    folder: Path
    config: TransformerConfig | None
    run: Mapping[str, Any]
    examples: tuple[str, ...] = ()
    parameters: int = 0
    fault: str | None = None
    origin: str = "shipped"
    """"shipped", "named" (at the start of the app), "added" (by the command for examples),
    "run" or "brought" (by this reader)."""
    family: str = OURS
    bytes: int = 0
    """What the files of weights take on disk."""

    @property
    def example(self) -> str:
        """What a new reader sees this model read."""
        return self.examples[0] if self.examples else ANY_EXAMPLE


@dataclass(frozen=True, eq=False)
class Opened:
    """A model that is ready to read; two of them are equal only when they are the same."""

    name: str
    title: str
    model: Transformer
    config: TransformerConfig
    tokenizer: AnyTokenizer
    run: Mapping[str, Any]
    task: Task | None
    example: str
    expectation: str = ""
    family: str = OURS

    @property
    def bytes(self) -> int:
        """What its weights take in memory."""
        return sum(parameter.nbytes for parameter in self.model.parameters())


def shipped_root() -> Path:
    """Where the models that come with the app are kept."""
    return Path(os.environ.get("EXPLORER_CHECKPOINTS") or ROOT / "models" / "checkpoints")


def runs_root() -> Path:
    """Where training runs are kept."""
    return Path(os.environ.get("EXPLORER_RUNS") or ROOT / "runs")


def uploads_root() -> Path:
    """Where uploaded models are kept for a while."""
    return runs_root() / ".uploads"


def systems_root() -> Path:
    """Where the documents' systems are kept, which the app makes itself."""
    return runs_root() / ".systems"


def uploaded(name: str) -> Path | None:
    """The folder of an upload, or of a document's system, for those who know its name."""
    return places.uploaded(name, uploads_root()) or places.uploaded(name, systems_root())


def entries(root: Path | None = None, brought: Sequence[Path] = ()) -> list[Entry]:
    """Every model one could open; `brought` are folders that only this reader knows.

    First what the reader brought and what was named at the start of the app, then the
    shipped ones, then runs, the newest first. A name that is taken gets a number, and what
    is brought takes none away: an address means the same model as before.
    """
    found: dict[str, Entry] = {}
    for origin, name, folder in _folders(root or runs_root(), brought):
        if any(entry.folder == folder for entry in found.values()):
            continue
        copies = (name if i == 1 else f"{name} ({i})" for i in range(1, len(found) + 2))
        free = next(each for each in copies if each not in found)
        found[free] = _entry(origin, free, folder, _stamp(folder))
    return sorted(found.values(), key=lambda entry: entry.origin != "brought")


def look_at(folder: Path) -> Entry:
    """A folder of somebody else's, as it would stand on the shelf."""
    return _entry("brought", places.name_of(folder), folder, _stamp(folder))


def open_model(name: str, root: Path | None = None) -> Opened:
    """The model called `name`, read once. LibraryError says in a sentence why not."""
    for entry in entries(root):
        if entry.name == name:
            return open_entry(entry)
    raise LibraryError(f"There is no model called {name[:60]!r} here.")


def open_entry(entry: Entry) -> Opened:
    """The same for a model that was found on the shelf."""
    try:
        return _open(entry.name, entry.folder, entry.title, entry.example, _stamp(entry.folder))
    except MemoryError as error:
        raise LibraryError(f"There is not enough memory to open {entry.name}.") from error


def opened_from(
    folder: Path, name: str, title: str | None = None, example: str | None = None
) -> Opened:
    """The model in a checkpoint folder, read anew; its own title and example unless given."""
    checkpoint, tokenizer = _load(name, folder)
    run = checkpoint.run or {}
    kind = str(run.get("task", name))
    task, known = TASKS.get(kind), TASKS.get(kind) or GIVEN.get(kind)
    return Opened(
        name=name,
        title=title or str(run.get("title") or name),
        model=checkpoint.model.eval().requires_grad_(False),
        config=checkpoint.config,
        tokenizer=tokenizer,
        run=run,
        task=task,
        example=example or str(run.get("example") or (task.example if task else ANY_EXAMPLE)),
        expectation=str(run.get("expectation") or (known.expectation if known else "")),
        family=checkpoint.family,
    )


def _folders(root: Path, brought: Sequence[Path]) -> Iterator[tuple[str, str, Path]]:
    """Origin, name and folder of everything that might be a model."""
    for folder in places.named_folders():
        yield "named", places.name_of(folder), folder
    shipped = [path for path in _subfolders(shipped_root()) if (path / "config.json").exists()]
    order = {name: index for index, name in enumerate(SHOWN_FIRST)}
    for folder in sorted(shipped, key=lambda path: (order.get(path.name, 99), path.name)):
        yield "shipped", folder.name, folder
    for folder in sorted(_subfolders(examples_root())):
        yield "added", folder.name, folder
    finished = [path for path in _subfolders(root) if (path / "checkpoint").is_dir()]
    for folder in sorted(finished, key=lambda path: path.stat().st_mtime_ns, reverse=True):
        yield "run", folder.name, folder / "checkpoint"
    for folder in brought:
        yield "brought", places.name_of(folder), folder


def _subfolders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as found:
            return [Path(each) for each in found if each.is_dir() and each.name[0] != "."]
    except OSError:
        return []


def _stamp(folder: Path) -> Stamp:
    """Changes when a file of the checkpoint does, so that a kept model is never a stale one."""
    try:
        with os.scandir(folder) as found:
            return tuple(sorted(map(_changed, islice(found, FILES_STAMPED))))
    except OSError:
        return ()


def _changed(file: os.DirEntry[str]) -> tuple[str, int, int]:
    try:
        seen = file.stat()
        return file.name, seen.st_mtime_ns, seen.st_size
    except OSError:
        return file.name, 0, 0


@lru_cache(maxsize=512)
def _entry(origin: str, name: str, folder: Path, stamp: Stamp) -> Entry:
    try:
        config, run = peek(folder)
        family = OURS
        if origin in ("named", "brought", "added"):
            found = inspect(folder)
            check(found)
            config, family = found.config, found.family
            if config.patch_size:
                raise CheckpointError("It reads images, for which there is no view here yet.")
    except (CheckpointError, OSError) as error:
        fault = str(error)
        return Entry(name, name, folder, None, {}, (), 0, fault, origin, bytes=_bytes(folder))
    kind = str(run.get("task", name))
    task, given = TASKS.get(kind), GIVEN.get(kind)
    own = task.title if task else given.title if given else name
    theirs = _texts([run.get("example")]) + _texts(run.get("examples"))
    usual = examples_for(config, family, folder) if family != OURS else ()
    examples = [*theirs, *(task.examples if task else usual)]
    return Entry(
        name=name,
        title="".join(_texts([run.get("title")], TITLE_LIMIT)) or own,
        folder=folder,
        config=config,
        run=run,
        examples=tuple(dict.fromkeys(examples)),
        parameters=_count_parameters(config),
        origin=origin,
        family=family,
        bytes=_bytes(folder),
    )


def _bytes(folder: Path) -> int:
    """What the weights take on disk; known without reading them."""
    try:
        files = [path for path in folder.iterdir() if path.suffix == ".safetensors"]
        return sum(path.stat().st_size for path in files)
    except OSError:
        return 0


def _texts(value: Any, longest: int = EXAMPLE_LIMIT) -> list[str]:
    """The texts of a record that somebody else may have written: few, short, one line each."""
    found = value[:EXAMPLES_LIMIT] if isinstance(value, list) else []
    lines = [" ".join(text.splitlines())[:longest] for text in found if isinstance(text, str)]
    return [line for line in lines if line.strip()]


def _count_parameters(config: TransformerConfig) -> int:
    with torch.device("meta"):  # the shapes alone, no numbers
        return Transformer(config).n_parameters


@cached(
    LRUCache(WEIGHTS_KEPT, getsizeof=lambda opened: min(opened.bytes, WEIGHTS_KEPT)), lock=Lock()
)
def _open(name: str, folder: Path, title: str, example: str, stamp: Stamp) -> Opened:
    return opened_from(folder, name, title, example)


def _load(name: str, folder: Path) -> tuple[Checkpoint, AnyTokenizer]:
    try:
        checkpoint = load_checkpoint(folder)
    except (CheckpointError, OSError) as error:
        raise LibraryError(f"The model {name} cannot be opened: {error}") from error
    try:
        return checkpoint, tokenizer_of(checkpoint)
    except TextError as error:
        raise LibraryError(f"The model {name} cannot read a text: {error}") from error
