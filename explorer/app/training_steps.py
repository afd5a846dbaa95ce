"""At which step of its training the chosen model is shown: the snapshots of its run.

A model at a step is a model like any other: on this run of the page it takes the place of the
trained one. So every page shows it without knowing of it.
"""

from pathlib import Path

from explorer.catalog.available_models import ModelEntry, entry_in
from explorer.catalog.run_index import run_of, step_folders

TRAINED = -1
"""Stands for no step: the finished model, or the newest there is."""
Snapshots = dict[int, Path]
"""Folders of the training that made a model, by their step, the first one first."""


def snapshots_of(entry: ModelEntry) -> Snapshots:
    """Those of the run that this model is of; none of a model that was brought."""
    if entry.origin == "brought":  # nothing around a reader's own folder is searched
        return {}
    return dict(step_folders(run_of(entry.folder) / "snapshots"))


def step_names(entry: ModelEntry, snapshots: Snapshots) -> dict[int, str]:
    """What can be chosen, and what each is called: the steps, and the trained model behind them."""
    if not snapshots:
        return {TRAINED: ""}
    return {**{step: str(step) for step in snapshots}, TRAINED: _trained(entry, max(snapshots))}


def _trained(entry: ModelEntry, last: int) -> str:
    if entry.run.get("is_finished") is True:
        return "final"
    step = entry.run.get("steps")
    return "newest" if isinstance(step, int) and step >= last else "saved"


def entry_at(entry: ModelEntry, folder: Path) -> ModelEntry:
    """The same model as it was in this snapshot."""
    return entry_in(entry, folder)
