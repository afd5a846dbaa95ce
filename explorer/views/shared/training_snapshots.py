"""The snapshots of the training that made the chosen model, as models to open."""

from pathlib import Path

from explorer.app import choice
from explorer.app.context import PageContext
from explorer.catalog.available_models import Stamp, stamp_of
from explorer.catalog.opened_model import OpenModel
from explorer.inference.results_cache import cached
from explorer.runs.run import open_folder

Snapshots = dict[str, Path]
"""Folders of the training that made the chosen model, by their step."""


def snapshots_of(context: PageContext) -> Snapshots:
    """The snapshots of the run that trained the chosen model; none if no run here did."""
    snapshots = choice.snapshots_of(context.entry)
    return {str(step): folder for step, folder in snapshots.items()}


Identity = tuple[Path, Stamp]
"""A folder, and the times and sizes of its files, which change when its content does."""


def identity_of(folder: Path) -> Identity:
    """The key of cached results of a snapshot: replacing a file makes them stale."""
    return folder, stamp_of(folder)


def open_snapshot(opened: OpenModel, folder: Path, use: str = "step") -> OpenModel:
    """The model at this snapshot, opened once. Raises ModelError if it cannot be opened.

    Each `use` has a model of its own, so two uses share no cached results.
    """
    key = use, identity_of(folder)
    return cached(opened, key, lambda: open_folder(folder), lambda model: model.bytes)
