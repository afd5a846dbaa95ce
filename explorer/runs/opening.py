"""Opens what a run has written so far, finished or not, as a model to read with."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from explorer.library import LibraryError, Opened
from explorer.runs.run import Run
from explorer.tasks import TASKS
from explorer.text import TextError, Tokenizer
from models import load_checkpoint

ANY_EXAMPLE = "To be, or not to be"


def open_folder(folder: Path) -> Opened:
    """The model in a checkpoint folder, or the newest one in a run's folder.

    It is read anew: weights of a running training are soon replaced. LibraryError
    says in a sentence why there is nothing to open.
    """
    folder = Path(folder).absolute()
    name = folder.name
    if (folder / "spec.json").is_file():
        run = Run(folder)
        newest = run.checkpoint() or run.latest()
        if newest is None:
            raise LibraryError(f"The run {name} has no weights yet.")
        folder = newest
    try:
        checkpoint = load_checkpoint(folder)
        if checkpoint.tokenizer is None:
            raise LibraryError(f"The model {name} has no tokenizer.json, so it cannot read a text.")
        tokenizer = _tokenizer(checkpoint.tokenizer)
    except (OSError, TextError, ValueError) as error:
        if isinstance(error, LibraryError):
            raise
        raise LibraryError(f"The model {name} cannot be opened: {error}") from error
    run_record = checkpoint.run or {}
    task = TASKS.get(str(run_record.get("task", "")))
    return Opened(
        name=name,
        title=str(run_record.get("title") or name),
        model=checkpoint.model.eval().requires_grad_(False),
        config=checkpoint.config,
        tokenizer=tokenizer,
        run=run_record,
        task=task,
        example=str(run_record.get("example") or (task.example if task else ANY_EXAMPLE)),
    )


@lru_cache(maxsize=4)
def _tokenizer(text: str) -> Tokenizer:
    return Tokenizer.from_json(text)
