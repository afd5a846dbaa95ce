"""The models that one reader can open: everybody's, and those that this reader brought."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from explorer.app import url
from explorer.app.session import session
from explorer.catalog import entries as library
from explorer.catalog.entries import Entry

FIRST_MODEL = "translation"
MOST_BROUGHT = 20


def entries() -> list[Entry]:
    """All of them, also those that cannot be opened."""
    return library.entries(brought=_brought())


def openable() -> dict[str, Entry]:
    """Those that can be opened, by name."""
    return _by_name(entries())


def everybodys() -> dict[str, Entry]:
    """The same before any reader has come."""
    return _by_name(library.entries(brought=()))


def _by_name(found: Sequence[Entry]) -> dict[str, Entry]:
    return {entry.name: entry for entry in found if entry.config is not None}


def first(shelf: Mapping[str, Entry]) -> Entry:
    """What a new reader sees: what the app was started for, or the model that is shown first."""
    named = next((entry for entry in shelf.values() if entry.origin == "named"), None)
    return named or shelf.get(FIRST_MODEL) or next(iter(shelf.values()))


def bring(folder: Path) -> None:
    """Put a folder on the shelf of this reader alone."""
    brought = _brought()
    if folder not in brought:
        brought.append(folder)
        del brought[:-MOST_BROUGHT]


def _brought() -> list[Path]:
    """Folders that only this reader knows, an upload that the address names among them."""
    brought = session().brought
    asked = library.uploaded(url.asked("model"))
    if asked is not None and asked not in brought:
        brought.append(asked)
    return brought
