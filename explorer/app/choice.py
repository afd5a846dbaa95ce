"""What is chosen once for all pages: the sentences, the model, its training step and one head.

A snapshot of a training run is a model like any other: it takes the place of the trained model for
this run of the page, so every page can show it.
"""

from dataclasses import dataclass, fields
from pathlib import Path

from explorer.catalog.available_models import ModelEntry
from explorer.catalog.run_index import run_of, step_folders

TRAINED = -1
"""Stands for the finished model, or the newest snapshot there is."""
Snapshots = dict[int, Path]
"""Folders of the training that made a model, by their step, the first one first."""


def snapshots_of(entry: ModelEntry) -> Snapshots:
    """The snapshots of the run that made this model; none of a reader's own folder."""
    if entry.origin == "brought":  # nothing around a reader's own folder is searched
        return {}
    return dict(step_folders(run_of(entry.folder) / "snapshots"))


def step_names(entry: ModelEntry, snapshots: Snapshots) -> dict[int, str]:
    """The labels of the steps that can be chosen; the trained model comes last."""
    if not snapshots:
        return {TRAINED: ""}
    saved_at = entry.run.get("steps")
    trained = "newest" if isinstance(saved_at, int) and saved_at >= max(snapshots) else "saved"
    if entry.run.get("is_finished") is True:
        trained = "final"
    return {step: str(step) for step in snapshots} | {TRAINED: trained}


Head = tuple[str, int, int]
"""A part of a model, a layer and a head."""


@dataclass(frozen=True)
class Choice:
    """Everything that is chosen once for all pages."""

    text: str
    pair: str
    model: str
    part: str
    layer: int
    head: int
    special: bool = False
    """Whether special tokens that are written in the text are read as such."""
    training_step: int = TRAINED
    """The step of the training at which the model is shown, where it has snapshots."""

    @property
    def place(self) -> Head:
        """The chosen head."""
        return self.part, self.layer, self.head


FRAME = tuple(field.name for field in fields(Choice))
"""The same by its names in the address."""
