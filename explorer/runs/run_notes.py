"""What a reader notes of a run, in its folder: tags, a note, and the sweep that it belongs to.

The file is replaced as a whole, so a process that is killed meanwhile leaves the old one. One
that is damaged says nothing: a run is listed whatever was noted of it.
"""

import dataclasses
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from explorer.system.atomic_files import read_json_object, write_json

NOTES_FILE = "notes.json"
MOST_TAGS, LONGEST_TAG, LONGEST_NOTE, LONGEST_TITLE = 8, 24, 1_000, 80
SWEEP = re.compile(r"[0-9a-f]{12}|")


@dataclass(frozen=True)
class RunNotes:
    """`sweep` is the key that the runs of one sweep share, `sweep_title` what it is called."""

    tags: tuple[str, ...] = ()
    note: str = ""
    sweep: str = ""
    sweep_title: str = ""

    def replace(self, **changes: Any) -> "RunNotes":
        return dataclasses.replace(self, **changes)


def notes_in(folder: Path) -> RunNotes:
    """What is noted in this folder of a run; nothing where there is nothing that can be read."""
    try:
        found = read_json_object(folder / NOTES_FILE)
    except (OSError, ValueError):
        return RunNotes()
    tags = found.get("tags")
    sweep = _text(found.get("sweep"), LONGEST_TITLE)
    return RunNotes(
        as_tags(tags if isinstance(tags, list) else ()),
        _text(found.get("note"), LONGEST_NOTE),
        sweep if SWEEP.fullmatch(sweep) else "",
        _text(found.get("sweep_title"), LONGEST_TITLE),
    )


def write_notes(folder: Path, notes: RunNotes) -> None:
    """Replace what is noted there. OSError where it cannot be written."""
    kept = notes.replace(tags=as_tags(notes.tags), note=notes.note[:LONGEST_NOTE])
    write_json(folder / NOTES_FILE, dataclasses.asdict(kept))


def as_tags(words: Iterable[object]) -> tuple[str, ...]:
    """These words as tags: short ones, each once, as many as a run may have."""
    short = (" ".join(str(word).split())[:LONGEST_TAG] for word in words)
    return tuple(dict.fromkeys(word for word in short if word))[:MOST_TAGS]


def _text(found: object, most: int) -> str:
    return found[:most] if isinstance(found, str) else ""
