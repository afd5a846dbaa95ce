"""Lessons that readers upload, by their owner, so that a reload and another tab find them.

They lie in this process; those of the reader who used theirs longest ago leave first.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock

from cachetools import LRUCache

from explorer.lessons.lesson import Lesson
from explorer.system.limits import OWN_LESSONS_BYTES

MOST_OWN_LESSONS = 10
"""Lessons of one reader; another takes the place of the first."""
Sized = tuple[Lesson, int]


@dataclass
class BeginLesson:
    """The lesson that begins as soon as the page Lessons is there."""

    name: str = ""


class OwnLessons:
    """Those of all readers, by their owner: see `explorer.app.reader`."""

    def __init__(self) -> None:
        self._lock = Lock()
        most = OWN_LESSONS_BYTES.most
        self._by_owner: LRUCache[str, Mapping[str, Sized]] = LRUCache(
            most, getsizeof=lambda kept: min(most, sum(size for _, size in kept.values()))
        )

    def of(self, owner: str) -> Mapping[str, Lesson]:
        """This reader's, by name."""
        with self._lock:
            kept = self._by_owner.get(owner, {})
        return {name: lesson for name, (lesson, _) in kept.items()}

    def add(self, owner: str, lesson: Lesson, size: int) -> None:
        """Take it in, as the last; `size` is that of its file, in bytes."""
        with self._lock:
            kept = dict(self._by_owner.get(owner, {}))
            kept.pop(lesson.name, None)
            kept[lesson.name] = lesson, size
            self._by_owner[owner] = dict([*kept.items()][-MOST_OWN_LESSONS:])


OWN_LESSONS = OwnLessons()
