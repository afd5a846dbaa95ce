"""Open a model with its tokenizer; the weights are kept until the files on disk change."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from cachetools import LRUCache, cached

from explorer.catalog import ModelError, in_a_sentence
from explorer.catalog.available_models import ModelEntry, Stamp, list_models, stamp_of
from explorer.catalog.folders import own_name
from explorer.catalog.model_descriptions import ANY_EXAMPLE
from explorer.catalog.pass_budget import MEMORY, BoundedTransformer, SteppingOperations
from explorer.catalog.tokenizers import tokenizer_of
from explorer.system.cooperative import CancellableCondition
from explorer.system.limits import MODEL_BYTES, WEIGHTS_BYTES
from explorer.tasks import CUSTOM_TASKS, TASKS, Task
from explorer.text import READS_SPECIAL, AnyTokenizer, TextError
from models import TransformerConfig, load_checkpoint
from models.loading.checkpoint import Checkpoint, CheckpointError
from models.loading.folder_config import OURS
from models.loading.weight_files import open_weights

WEIGHTS_KEPT = WEIGHTS_BYTES.most
"""Bytes of all open models together; a larger model can still be opened, and is kept alone."""


@dataclass(frozen=True, eq=False)
class OpenModel:
    """A model that is ready to run; two are equal only if they are the same object."""

    name: str
    folder: Path
    title: str
    model: BoundedTransformer
    config: TransformerConfig
    tokenizer: AnyTokenizer
    run: Mapping[str, Any]
    task: Task | None
    example: str
    expectation: str = ""
    family: str = OURS

    @property
    def reads_prompts(self) -> bool:
        """Whether it reads the names of special tokens in a text as special tokens."""
        return isinstance(self.tokenizer, READS_SPECIAL) and self.tokenizer.reads_special

    @property
    def bytes(self) -> int:
        return sum(parameter.nbytes for parameter in self.model.parameters())


def open_model(name: str, root: Path | None = None) -> OpenModel:
    """Open the model called `name`, or return it from memory. ModelError says why it cannot."""
    for entry in list_models(root):
        if entry.name == name:
            return open_entry(entry)
    raise ModelError(f"There is no model called {name[:60]!r} here.")


def open_entry(entry: ModelEntry) -> OpenModel:
    """Open the model of an entry, or return it from memory. ModelError says why it cannot."""
    try:
        return _open(entry.name, entry.folder, entry.title, entry.example, stamp_of(entry.folder))
    except MemoryError as error:
        raise ModelError(f"There is not enough memory to open {entry.title}.") from error


def open_checkpoint(
    folder: Path,
    name: str,
    title: str | None = None,
    example: str | None = None,
    *,
    reads_prompts: bool = False,
) -> OpenModel:
    """Read the model in a checkpoint folder; title and example are its own by default.

    With `reads_prompts`, it reads the names of special tokens in a text as special tokens.
    """
    checkpoint, tokenizer = _load(name, folder)
    if reads_prompts and isinstance(tokenizer, READS_SPECIAL):
        tokenizer = tokenizer.reading_prompts()
    run = checkpoint.run or {}
    kind = str(run.get("task", name))
    task = TASKS.get(kind)
    described = task or CUSTOM_TASKS.get(kind)
    return OpenModel(
        name=name,
        folder=folder,
        title=title or str(run.get("title") or name),
        model=BoundedTransformer(checkpoint.model.eval().requires_grad_(False)),
        config=checkpoint.config,
        tokenizer=tokenizer,
        run=run,
        task=task,
        example=example or str(run.get("example") or (task.example if task else ANY_EXAMPLE)),
        expectation=str(run.get("expectation") or (described.expectation if described else "")),
        family=checkpoint.family,
    )


@cached(
    LRUCache(WEIGHTS_KEPT, getsizeof=lambda opened: min(opened.bytes, WEIGHTS_KEPT)),
    condition=CancellableCondition(),
)
def _open(name: str, folder: Path, title: str, example: str, stamp: Stamp) -> OpenModel:
    return open_checkpoint(folder, name, title, example)


def _size(folder: Path) -> int:
    """Bytes of a model's weights in memory, from the headers; 0 where loading will raise."""
    try:
        weights = open_weights(folder)
    except (CheckpointError, OSError):
        return 0
    return sum(4 * prod(weights.shape(name)) for name in weights.names)


def _load(name: str, folder: Path) -> tuple[Checkpoint, AnyTokenizer]:
    size = _size(folder)
    MODEL_BYTES.check(size, ModelError)
    try:
        with MEMORY.spend(size), SteppingOperations():
            checkpoint = load_checkpoint(folder)
    except (CheckpointError, OSError) as error:
        why = in_a_sentence(error)
        raise ModelError(f"The model {own_name(name)} cannot be opened: {why}") from error
    try:
        return checkpoint, tokenizer_of(checkpoint)
    except TextError as error:
        raise ModelError(f"The model {own_name(name)} cannot read a text: {error}") from error
