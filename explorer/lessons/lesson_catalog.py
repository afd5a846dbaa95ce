"""All lessons: those that ship with the app, and a lecturer's own from another folder."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from explorer.lessons.lesson import Lesson
from explorer.lessons.lesson_file import CANNOT_BE_READ, SUFFIX, LessonError, Pages, read_file

FILES = Path(__file__).with_name("files")
PICTURES = Path(__file__).with_name("pictures")
"""By the name of a lesson; `python -m docs.pictures` takes them."""
FOLDER = "EXPLORER_LESSONS"
TAUGHT = (
    "attention_by_hand",
    "why_sqrt_d",
    "masks",
    "positions",
    "tokens_of_other_languages",
    "follow_one_number",
    "sampling_and_temperature",
    "two_layers_make_induction",
    "how_translation_aligns",
    "reading_a_classifier",
    "attention_sinks",
    "an_indirect_object",
    "what_training_does",
    "a_mistake_of_the_museum",
)
"""The shipped lessons in the order of teaching."""
MOST_LESSONS = 200
"""Lessons of one folder, by name; the rest are not read."""


@dataclass(frozen=True)
class LessonCatalog:
    """Lessons by name, in order, and the faults of files that are no lesson."""

    lessons: Mapping[str, Lesson]
    faults: tuple[str, ...] = ()


def own_folder() -> Path | None:
    """The folder of a lecturer's own lessons, if the environment names one."""
    name = os.environ.get(FOLDER, "").strip()
    return Path(name).expanduser() if name else None


def lesson_catalog(pages: Pages) -> LessonCatalog:
    """All lessons in the order of teaching, then the lecturer's own by name.

    A lecturer's lesson replaces the shipped one with its name. A file that changed is read again.
    """
    shipped, own = _read_folder(FILES, pages), LessonCatalog({})
    if (folder := own_folder()) is not None:
        own = _read_folder(folder, pages)
    taught = {name: shipped.lessons[name] for name in TAUGHT if name in shipped.lessons}
    return LessonCatalog({**taught, **own.lessons}, (*shipped.faults, *own.faults))


def _read_folder(folder: Path, pages: Pages) -> LessonCatalog:
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix == SUFFIX)
    except OSError:
        fault = f"{FOLDER} names a folder that cannot be read: check its name."
        return LessonCatalog({}, (fault,))
    results = [_lesson_or_fault(path, pages) for path in files[:MOST_LESSONS]]
    return LessonCatalog(
        {lesson.name: lesson for lesson in results if isinstance(lesson, Lesson)},
        tuple(fault for fault in results if isinstance(fault, str)),
    )


_READ: dict[Path, tuple[tuple[int, int], Lesson | str]] = {}
"""For each file: the time of its change and its size, and the lesson or its fault."""


def _lesson_or_fault(path: Path, pages: Pages) -> Lesson | str:
    try:
        status = path.stat()
    except OSError:
        return CANNOT_BE_READ.format(file=path.name)
    stamp = status.st_mtime_ns, status.st_size
    if path not in _READ or _READ[path][0] != stamp:
        try:
            _READ[path] = stamp, read_file(path, pages)
        except LessonError as error:
            _READ[path] = stamp, str(error)
    return _READ[path][1]
