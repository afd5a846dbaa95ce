"""The models a reader can open: those that ship with the app and those trained here.

Looking a model up reads only its config and how it was made; weights are read
when it is opened. Both are kept until the files on disk change, so every page
may ask for them on every run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from explorer.tasks import GIVEN, TASKS, Task
from explorer.text import Tokenizer
from models import Transformer, TransformerConfig, load_checkpoint
from models.checkpoint import Checkpoint, CheckpointError, peek

ROOT = Path(__file__).resolve().parent.parent
SHOWN_FIRST = (
    "translation",
    "shakespeare",
    "reviews",
    "negation",
    "reverse",
    "induction",
    "induction-control",
)
FILES = ("config.json", "model.safetensors", "tokenizer.json", "run.json")
ANY_EXAMPLE = "To be, or not to be"
MODELS_KEPT = 16
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
    tokenizer: Tokenizer
    run: Mapping[str, Any]
    task: Task | None
    example: str
    expectation: str = ""


def shipped_root() -> Path:
    """Where the models that come with the app are kept."""
    return Path(os.environ.get("EXPLORER_CHECKPOINTS") or ROOT / "models" / "checkpoints")


def runs_root() -> Path:
    """Where training runs are kept."""
    return Path(os.environ.get("EXPLORER_RUNS") or ROOT / "runs")


def entries(root: Path | None = None) -> list[Entry]:
    """Every model one could open: the shipped ones first, then runs, the newest first."""
    found: dict[str, Entry] = {}
    for name, folder in _folders(root or runs_root()):
        found.setdefault(name, _entry(name, folder, _stamp(folder)))
    return list(found.values())


def open_model(name: str, root: Path | None = None) -> Opened:
    """The model called `name`, read once. LibraryError says in a sentence why not."""
    for entry in entries(root):
        if entry.name == name:
            return open_entry(entry)
    raise LibraryError(f"There is no model called {name[:60]!r} here.")


def open_entry(entry: Entry) -> Opened:
    """The same for a model that was found on the shelf."""
    return _open(entry.name, entry.folder, entry.title, entry.example, _stamp(entry.folder))


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
    )


def _folders(root: Path) -> Iterator[tuple[str, Path]]:
    shipped = [path for path in _subfolders(shipped_root()) if (path / "config.json").exists()]
    order = {name: index for index, name in enumerate(SHOWN_FIRST)}
    for folder in sorted(shipped, key=lambda path: (order.get(path.name, 99), path.name)):
        yield folder.name, folder
    finished = [path for path in _subfolders(root) if (path / "checkpoint").is_dir()]
    for folder in sorted(finished, key=lambda path: path.stat().st_mtime_ns, reverse=True):
        yield folder.name, folder / "checkpoint"


def _subfolders(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.is_dir() and path.name[0] != "."]
    except OSError:
        return []


def _stamp(folder: Path) -> tuple[int, ...]:
    """Changes when a file of the checkpoint does, so that a kept model is never a stale one."""
    return tuple(_changed(f"{folder}/{file}") for file in FILES)


def _changed(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=512)
def _entry(name: str, folder: Path, stamp: tuple[int, ...]) -> Entry:
    try:
        config, run = peek(folder)
    except (CheckpointError, OSError) as error:
        return Entry(name, name, folder, None, {}, fault=str(error))
    kind = str(run.get("task", name))
    task, given = TASKS.get(kind), GIVEN.get(kind)
    own = task.title if task else given.title if given else name
    theirs = _texts([run.get("example")]) + _texts(run.get("examples"))
    examples = [*theirs, *(task.examples if task else ())]
    return Entry(
        name=name,
        title="".join(_texts([run.get("title")], TITLE_LIMIT)) or own,
        folder=folder,
        config=config,
        run=run,
        examples=tuple(dict.fromkeys(examples)),
        parameters=_count_parameters(config),
    )


def _texts(value: Any, longest: int = EXAMPLE_LIMIT) -> list[str]:
    """The texts of a record that somebody else may have written: few, short, one line each."""
    found = value[:EXAMPLES_LIMIT] if isinstance(value, list) else []
    lines = [" ".join(text.splitlines())[:longest] for text in found if isinstance(text, str)]
    return [line for line in lines if line.strip()]


def _count_parameters(config: TransformerConfig) -> int:
    with torch.device("meta"):  # the shapes alone, no numbers
        return Transformer(config).n_parameters


@lru_cache(maxsize=MODELS_KEPT)
def _open(name: str, folder: Path, title: str, example: str, stamp: tuple[int, ...]) -> Opened:
    return opened_from(folder, name, title, example)


def _load(name: str, folder: Path) -> tuple[Checkpoint, Tokenizer]:
    try:
        checkpoint = load_checkpoint(folder)
    except (CheckpointError, OSError) as error:
        raise LibraryError(f"The model {name} cannot be opened: {error}") from error
    if checkpoint.tokenizer is None:
        raise LibraryError(f"The model {name} has no tokenizer.json, so it cannot read a text.")
    try:
        tokenizer = _tokenizer(checkpoint.tokenizer)
    except ValueError as error:
        raise LibraryError(f"The tokenizer of {name} cannot be opened: {error}") from error
    config = checkpoint.config
    if tokenizer.vocab_size > (config.src_vocab_size or config.vocab_size):
        raise LibraryError(f"The tokenizer of {name} knows more tokens than its model reads.")
    return checkpoint, tokenizer


@lru_cache(maxsize=MODELS_KEPT)
def _tokenizer(text: str) -> Tokenizer:
    """Kept by its text: the checkpoints of one run all come with the same."""
    return Tokenizer.from_json(text)
