"""Which lessons there are: those that ship, and a lecturer's own in the folder that is named."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from explorer.lessons.lesson import Lesson
from explorer.lessons.lesson_file import CANNOT_BE_READ, SUFFIX, LessonError, Pages, read_file

FILES = Path(__file__).with_name("files")
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
    "an_indirect_object",
    "what_training_does",
    "a_mistake_of_the_museum",
)
"""The shipped lessons in the order in which one would teach them."""
MOST_LESSONS = 200
"""Of one folder; those behind them, by name, are not read."""


@dataclass(frozen=True)
class LessonCatalog:
    """Lessons by their names, in order, and why the others are none."""

    lessons: Mapping[str, Lesson]
    faults: tuple[str, ...] = ()


def own_folder() -> Path | None:
    """The folder of a lecturer's own lessons, if whoever started the app named one."""
    name = os.environ.get(FOLDER, "").strip()
    return Path(name).expanduser() if name else None


def lesson_catalog(pages: Pages) -> LessonCatalog:
    """All lessons, as they are taught; those of the folder follow, by name.

    One of the folder takes the place of a shipped one of its name. A file is read again when
    it has changed.
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
"""By file, when it was changed and its size, and the lesson or why it is none."""


def _lesson_or_fault(path: Path, pages: Pages) -> Lesson | str:
    """The lesson of a file, or why it is none."""
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
