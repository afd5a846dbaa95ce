"""The snapshots of the training that made the chosen model, as models to open."""

from pathlib import Path

from explorer.app import choice
from explorer.app.context import PageContext
from explorer.catalog.available_models import Stamp, stamp_of
from explorer.catalog.opened_model import OpenModel
from explorer.inference.results_cache import kept
from explorer.runs.run import open_folder

Snapshots = dict[str, Path]
"""Folders of the training that made the chosen model, by their step."""


def snapshots_of(context: PageContext) -> Snapshots:
    """Those of the chosen model's run; none of a model that was brought."""
    found = choice.snapshots_of(context.models[context.choice.model])
    return {str(step): folder for step, folder in found.items()}


Identity = tuple[Path, Stamp]
"""A folder, and the times and sizes of its files: the same as long as its content is."""


def identity_of(folder: Path) -> Identity:
    """What is kept of a snapshot is kept under this: a file that is replaced makes it stale."""
    return folder, stamp_of(folder)


def open_snapshot(opened: OpenModel, folder: Path, use: str = "step") -> OpenModel:
    """The model as it was, read once. ModelError says in a sentence why it cannot be opened.

    Each `use` has a model of its own, so what is computed for one is not another's.
    """
    key = use, identity_of(folder)
    return kept(opened, key, lambda: open_folder(folder), lambda one: one.bytes)
