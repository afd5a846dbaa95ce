"""Which lessons there are: those that ship, and a lecturer's own in the folder that is named."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from explorer.lessons.lesson import Lesson
from explorer.lessons.lesson_check import Pages, checked
from explorer.lessons.lesson_file import SUFFIX, LessonError, read_file

FILES = Path(__file__).with_name("files")
FOLDER = "EXPLORER_LESSONS"
MOST_FILES = 200
"""Of one folder; those behind them, by name, are not read."""


@dataclass(frozen=True)
class LessonShelf:
    """Lessons by their names, in order, and why the others are none."""

    lessons: Mapping[str, Lesson]
    faults: tuple[str, ...] = ()


def own_folder() -> Path | None:
    """The folder of a lecturer's own lessons, if whoever started the app named one."""
    named = os.environ.get(FOLDER, "").strip()
    return Path(named).expanduser() if named else None


def lesson_shelf(pages: Pages) -> LessonShelf:
    """All lessons; one of the folder takes the place of a shipped one of its name.

    A file is read again when it has changed.
    """
    shipped, own = _read_folder(FILES, pages), LessonShelf({})
    if (folder := own_folder()) is not None:
        own = _read_folder(folder, pages)
    return LessonShelf({**shipped.lessons, **own.lessons}, (*shipped.faults, *own.faults))


def _read_folder(folder: Path, pages: Pages) -> LessonShelf:
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix == SUFFIX)
    except OSError:
        return LessonShelf({}, (f"{FOLDER} names a folder that cannot be read: check its name.",))
    lessons, faults = dict[str, Lesson](), []
    for path in files[:MOST_FILES]:
        try:
            found = path.stat()
            lesson = _read(path, found.st_mtime_ns, found.st_size)
            lessons[lesson.name] = checked(lesson, pages)
        except LessonError as error:
            faults.append(str(error))
        except OSError:
            continue  # it was taken away meanwhile
    return LessonShelf(lessons, tuple(faults))


@lru_cache(maxsize=2 * MOST_FILES)
def _read(path: Path, _changed: int, _size: int) -> Lesson:
    return read_file(path)
