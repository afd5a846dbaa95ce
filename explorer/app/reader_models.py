"""The models that one reader can open, and which of them is shown first.

They are the models for everybody, the trained ones, and those that only this reader knows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

import streamlit as st
from cachetools import LRUCache

from explorer.app import address, reader_runs
from explorer.app.reader import is_local
from explorer.app.session import state_of
from explorer.catalog import available_models, pretrained_models, uploads
from explorer.catalog.available_models import ModelEntry
from explorer.catalog.folders import brought_name, is_checkpoint, own_name
from explorer.catalog.typed_model_path import paths_allowed
from explorer.system.data_folders import uploads_root

_lock = Lock()
_named_by_paths: LRUCache[str, Path] = LRUCache(maxsize=200)
"""Folders that readers have opened by path, by unique names."""
FIRST_MODEL = "translation"
ALL_MODELS = "All models"
"""The view of Models that begins with the list of models; the others end with it."""
MOST_BROUGHT = 20


@dataclass
class NamedModels:
    """The models that only this reader knows."""

    runs: list[str] = field(default_factory=list)
    """Names that the address has had for a model; the runs among them stay in the list."""
    folders: list[Path] = field(default_factory=list)


def entries() -> list[ModelEntry]:
    """All models, also those that cannot be opened."""
    for name in ("model", "other_model"):  # a link may name older runs
        if address.is_declared(name):
            add_run(address.value_of(name))
    add_run(str(st.session_state.get("model", "")))
    runs = reader_runs.runs_with_models(tuple(state_of(NamedModels).runs))
    return available_models.list_models(brought=_brought(), runs=runs)


def openable() -> dict[str, ModelEntry]:
    """The models that can be opened, by name."""
    return _by_name(entries())


def everybodys() -> dict[str, ModelEntry]:
    """The same for everybody, before any reader has come."""
    return _by_name(available_models.list_models(runs=()))


def _by_name(models: Sequence[ModelEntry]) -> dict[str, ModelEntry]:
    return {entry.name: entry for entry in models if entry.config is not None}


def first(models: Mapping[str, ModelEntry]) -> ModelEntry:
    """The model that a new reader sees: the one named at the start, or the first pretrained one."""
    shipped, pretrained = default(models), models.get(pretrained_models.FIRST)
    is_preferred = pretrained and pretrained.origin == "added" and shipped.origin != "named"
    return pretrained if pretrained and is_preferred else shipped


def default(models: Mapping[str, ModelEntry]) -> ModelEntry:
    """The model of an address that names none; every machine has it.

    It is the one named at the start of the app, or the shipped model that is shown first.
    """
    named = next((entry for entry in models.values() if entry.origin == "named"), None)
    return named or models.get(FIRST_MODEL) or next(iter(models.values()))


def titles(models: Mapping[str, ModelEntry]) -> dict[str, str]:
    """A unique label for each model."""
    return _unique({name: entry.title for name, entry in models.items()})


def labels(names: Iterable[str]) -> dict[str, str]:
    """A unique label for each model or run in a list, without its key."""
    return _unique({name: own_name(name) for name in names})


def _unique(labels: Mapping[str, str]) -> dict[str, str]:
    """These labels, with a number where one is taken."""
    by_label: dict[str, str] = {}
    for name, label in labels.items():
        candidates = (label if i == 1 else f"{label} ({i})" for i in range(1, len(labels) + 1))
        by_label[next(label for label in candidates if label not in by_label)] = name
    return {name: label for label, name in by_label.items()}


def add_model(folder: Path) -> None:
    """Add a folder to the models of this reader alone."""
    brought = _brought()
    if folder not in brought:
        brought.append(folder)
        del brought[:-MOST_BROUGHT]
    if not folder.is_relative_to(uploads_root()):
        with _lock:
            _named_by_paths[brought_name(folder)] = folder


def add_run(name: str) -> None:
    """Keep a run in the list of this reader's models though it is not among the newest."""
    names = state_of(NamedModels).runs
    if name and name not in names:
        names.append(name)
        del names[:-MOST_BROUGHT]


def _brought() -> list[Path]:
    """The folders that only this reader knows, with the one that the address names.

    A deleted folder leaves the list; the page says that the chosen model no longer exists.
    """
    brought, name = state_of(NamedModels).folders, address.value_of("model")
    brought[:] = [folder for folder in brought if folder.exists()]
    folder = uploads.find_upload(name) or _named_by_path(name)
    if folder is not None and folder not in brought:
        brought.append(folder)
    return brought


def _named_by_path(name: str) -> Path | None:
    """A folder opened by its path since the server started, for readers who may name paths."""
    with _lock:
        folder = _named_by_paths.get(name)
    if folder is None or not paths_allowed(is_local()):
        return None
    return folder if is_checkpoint(folder) else None
