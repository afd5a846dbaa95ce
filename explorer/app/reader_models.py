"""The models that one reader can open, and which of them is shown first.

They are everybody's, those trained, and those that only this reader knows.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

import streamlit as st
from cachetools import LRUCache

from explorer.app import reader_runs, url
from explorer.app.reader import is_local
from explorer.app.session import state_of
from explorer.catalog import available_models, pretrained_models, uploads
from explorer.catalog.available_models import ModelEntry
from explorer.catalog.folders import brought_name, is_checkpoint, own_name
from explorer.catalog.typed_model_path import paths_allowed
from explorer.system.data_folders import uploads_root

_lock = Lock()
_named_by_paths: LRUCache[str, Path] = LRUCache(maxsize=200)
"""Of all readers, by names that only one folder has."""
FIRST_MODEL = "translation"
MOST_BROUGHT = 20


@dataclass
class NamedModels:
    """What only this reader knows, beside what everybody finds."""

    runs: list[str] = field(default_factory=list)
    """What the address has named as a model: a run among them stays among the models."""
    folders: list[Path] = field(default_factory=list)


def entries() -> list[ModelEntry]:
    """All of them, also those that cannot be opened."""
    runs = reader_runs.runs_with_models(_named_runs())
    return available_models.list_models(brought=_brought(), runs=runs)


def openable() -> dict[str, ModelEntry]:
    """Those that can be opened, by name."""
    return _by_name(entries())


def everybodys() -> dict[str, ModelEntry]:
    """The same before any reader has come."""
    return _by_name(available_models.list_models(runs=()))


def _by_name(found: Sequence[ModelEntry]) -> dict[str, ModelEntry]:
    return {entry.name: entry for entry in found if entry.config is not None}


def first(models: Mapping[str, ModelEntry]) -> ModelEntry:
    """What a new reader sees: what the app was started for, or the first pretrained model."""
    usual, real = default(models), models.get(pretrained_models.FIRST)
    return real if real and real.origin == "added" and usual.origin != "named" else usual


def default(models: Mapping[str, ModelEntry]) -> ModelEntry:
    """What an address means that asks for something, but for no model; it is here on any machine.

    That is what the app was started for, or the shipped model that is shown first.
    """
    named = next((entry for entry in models.values() if entry.origin == "named"), None)
    return named or models.get(FIRST_MODEL) or next(iter(models.values()))


def labels(names: Collection[str]) -> dict[str, str]:
    """What each model or run is called in a list: without a key, none twice."""
    found: dict[str, str] = {}
    for name in names:
        called = own_name(name)
        copies = (called if i == 1 else f"{called} ({i})" for i in range(1, len(names) + 1))
        found[next(each for each in copies if each not in found)] = name
    return {name: label for label, name in found.items()}


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
    """Keep a run among the models of this reader that is not among their newest."""
    names = state_of(NamedModels).runs
    if name and name not in names:
        names.append(name)
        del names[:-MOST_BROUGHT]


def _named_runs() -> tuple[str, ...]:
    """What may be the name of an older run, or of one that a link has brought here."""
    for name in ("model", "other_model"):
        if url.is_declared(name):
            add_run(url.value_of(name))
    add_run(str(st.session_state.get("model", "")))
    return tuple(state_of(NamedModels).runs)


def _brought() -> list[Path]:
    """Folders that only this reader knows, one that the address names among them.

    One that was deleted leaves no row: the page has said that the chosen model no longer exists.
    """
    brought, name = state_of(NamedModels).folders, url.value_of("model")
    brought[:] = [folder for folder in brought if folder.exists()]
    asked = uploads.find_upload(name) or _named_by_path(name)
    if asked is not None and asked not in brought:
        brought.append(asked)
    return brought


def _named_by_path(name: str) -> Path | None:
    """What a reader has opened by its path while this server runs, for one who may name paths."""
    with _lock:
        folder = _named_by_paths.get(name)
    if folder is None or not paths_allowed(is_local()):
        return None
    return folder if is_checkpoint(folder) else None
