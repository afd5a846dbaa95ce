"""The snapshots of the training that made the chosen model, as models to open."""

from __future__ import annotations

from pathlib import Path

from explorer.app import training_steps
from explorer.app.context import PageContext
from explorer.catalog.opened_model import Opened
from explorer.inference.results_cache import kept
from explorer.runs.open_run import open_folder

Snapshots = dict[str, Path]
"""Folders of the training that made the chosen model, by their step."""


def snapshots_of(context: PageContext) -> Snapshots:
    """Those of the chosen model's run; none of a model that was brought."""
    found = training_steps.snapshots_of(context.shelf[context.choice.model])
    return {str(step): folder for step, folder in found.items()}


def open_snapshot(opened: Opened, folder: Path) -> Opened:
    """The model as it was, read once. ModelError says in a sentence why it cannot be opened."""
    return kept(opened, ("step", folder), lambda: open_folder(folder), lambda one: one.bytes)
