"""Lessons that readers upload, by their owner, so that a reload and another tab find them.

They lie in this process; those of the reader who used theirs longest ago leave first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock

from explorer.app.limits import OWN_LESSONS_BYTES
from explorer.lessons.lesson import Lesson

MOST = 10
"""Lessons of one reader; another takes the place of the first."""
Sized = tuple[Lesson, int]


class OwnLessons:
    """Those of all readers, by their owner: see `explorer.app.reader`."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._by_owner: OrderedDict[str, dict[str, Sized]] = OrderedDict()

    def of(self, owner: str) -> Mapping[str, Lesson]:
        """This reader's, by name."""
        with self._lock:
            if owner in self._by_owner:
                self._by_owner.move_to_end(owner)
            return {name: lesson for name, (lesson, _) in self._by_owner.get(owner, {}).items()}

    def add(self, owner: str, lesson: Lesson, size: int) -> None:
        """Take it in, as the last; `size` is that of its file, in bytes."""
        with self._lock:
            kept = self._by_owner.pop(owner, {})
            kept.pop(lesson.name, None)
            kept[lesson.name] = lesson, size
            while len(kept) > MOST:
                del kept[next(iter(kept))]
            self._by_owner[owner] = kept
            while len(self._by_owner) > 1 and not OWN_LESSONS_BYTES.allows(self._size()):
                self._by_owner.popitem(last=False)

    def _size(self) -> int:
        return sum(size for kept in self._by_owner.values() for _, size in kept.values())


OWN_LESSONS = OwnLessons()
