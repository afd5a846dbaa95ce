"""What this process stores for each reader: a session of kept views, and their own lessons.

A reload or another tab finds both. If the process loses a session (it restarted, or its store was
full), the reader's browser still has the list of its addresses, titles and notes, without pictures.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from threading import RLock
from typing import Any, Generic, TypeVar

from explorer.app.reader import network
from explorer.export.kept_view import ADDRESS_TOO_LONG, LONGEST_VIEW_ADDRESS, KeptView, one_line
from explorer.lessons.lesson import Lesson
from explorer.system import limits

NEW = "Kept session"
LEAST_BYTES = 10_000
"""A session counts as at least this many bytes, which bounds the number of empty ones."""
MOST_OWN_LESSONS = 10
"""Lessons of one reader; another one replaces the oldest."""

Kept = TypeVar("Kept")
Sized = tuple[Lesson, int]
"""A lesson, and the bytes of its file."""


class KeptByReader(Generic[Kept]):
    """What the readers keep, by owner: see `explorer.app.reader`.

    Where all is too large, the network that has the most loses first: of its readers the one who
    has used theirs longest ago. What was put last stays. So nobody pushes out what others keep.
    """

    def __init__(self, most: limits.Limit, size_of: Callable[[Kept], int]) -> None:
        self._most, self._size_of = most, size_of
        self.lock = RLock()
        self._entries: OrderedDict[str, tuple[str, Kept]] = OrderedDict()

    def of(self, owner: str) -> Kept | None:
        """What this reader keeps; None without any."""
        with self.lock:
            if owner not in self._entries:
                return None
            self._entries.move_to_end(owner)
            return self._entries[owner][1]

    def put(self, owner: str, kept: Kept) -> None:
        """Keep it; who changes what is kept holds the lock from before reading it."""
        self._entries[owner] = network(), kept
        self._entries.move_to_end(owner)
        of_network = Counter[str]()
        for home, each_kept in self._entries.values():
            of_network[home] += self._size_of(each_kept)
        while len(self._entries) > 1 and not self._most.allows(of_network.total()):
            others = list(self._entries)[:-1]
            home, dropped = self._entries.pop(
                max(others, key=lambda other: of_network[self._entries[other][0]])
            )
            of_network[home] -= self._size_of(dropped)


@dataclass(frozen=True)
class KeptSession:
    """A title and views. It is never changed: another session replaces it."""

    title: str = NEW
    views: tuple[KeptView, ...] = ()

    @cached_property
    def size(self) -> int:
        """Bytes of its views."""
        return sum(view.size for view in self.views)

    def listed(self) -> dict[str, Any]:
        """The list that the browser stores."""
        views = [[view.address, view.title, view.note] for view in self.views]
        return {"title": self.title, "views": views}


class KeptSessions(KeptByReader[KeptSession]):
    """The sessions of all readers by owner: see `explorer.app.reader`."""

    def __init__(self) -> None:
        super().__init__(limits.KEPT_BYTES, lambda session: max(LEAST_BYTES, session.size))

    def add(self, owner: str, view: KeptView) -> str:
        """Add a view at the end, or give its picture back to a view that has lost it.

        Returns why that is impossible, or an empty string.
        """
        if len(view.address) > LONGEST_VIEW_ADDRESS:
            return ADDRESS_TOO_LONG
        with self.lock:
            session = self.of(owner) or KeptSession()
            views = [*session.views]
            for at, old in enumerate(views):
                if old.address == view.address and not old.is_drawn:
                    views[at] = replace(view, title=old.title, note=old.note, id=old.id)
                    break
            else:
                views.append(view)
            if not limits.KEPT_VIEWS.allows(len(views)):
                return limits.KEPT_VIEWS.refusal(len(views))
            title = session.title
            if title == NEW and not session.views:
                title = one_line(view.about.get("sentence", NEW))
            size = sum(view.size for view in views)
            if not limits.KEPT_BYTES_OF_READER.allows(size):
                return limits.KEPT_BYTES_OF_READER.refusal(size)
            self.put(owner, KeptSession(title, tuple(views)))
        return ""

    def call(self, owner: str, title: str) -> None:
        """Give the session this title."""
        with self.lock:
            session = self.of(owner) or KeptSession()
            self.put(owner, KeptSession(one_line(title), session.views))

    def rename(
        self, owner: str, view_id: str, *, title: str | None = None, note: str | None = None
    ) -> None:
        """Change the title or the note of a view; None leaves it as it is."""

        def change(views: list[KeptView], at: int) -> None:
            old = views[at]
            views[at] = old.called(
                old.title if title is None else title, old.note if note is None else note
            )

        self._change(owner, view_id, change)

    def move(self, owner: str, view_id: str, by: int) -> None:
        """Move a view by so many places, at most to the start or the end."""
        self._change(owner, view_id, lambda views, at: views.insert(max(0, at + by), views.pop(at)))

    def remove(self, owner: str, view_id: str) -> None:
        """Remove a view."""
        self._change(owner, view_id, lambda views, at: views.__delitem__(at))

    def take_back(self, owner: str, remembered: object) -> None:
        """Restore the list that the browser has stored, if this process has no session."""
        session = read_list(remembered)
        with self.lock:
            if self.of(owner) is None and session is not None:
                self.put(owner, session)

    def _change(
        self, owner: str, view_id: str, change: Callable[[list[KeptView], int], None]
    ) -> None:
        """Call `change` with the views and the place of this one, unless another tab removed it."""
        with self.lock:
            session = self.of(owner) or KeptSession()
            for at, view in enumerate(session.views):
                if view.id == view_id:
                    views = [*session.views]
                    change(views, at)
                    self.put(owner, replace(session, views=tuple(views)))


def read_list(remembered: object) -> KeptSession | None:
    """A session from a list that a browser has sent; items that are no views are left out."""
    if not isinstance(remembered, Mapping) or not isinstance(remembered.get("views"), list):
        return None
    rows: Sequence[object] = remembered["views"][: limits.KEPT_VIEWS.most]
    title = remembered.get("title")
    views = tuple(view for row in rows if (view := _view_of(row)) is not None)
    return KeptSession(one_line(title) if isinstance(title, str) else NEW, views)


def _view_of(row: object) -> KeptView | None:
    if not isinstance(row, list) or len(row) != 3 or not all(isinstance(x, str) for x in row):
        return None
    address, title, note = row
    is_ours = address.startswith("/") and not address.startswith(("//", "/\\"))
    if not is_ours or len(address) > LONGEST_VIEW_ADDRESS or not address.isprintable():
        return None
    return KeptView("", address).called(title, note)


@dataclass
class BeginLesson:
    """The lesson that begins when the page Lessons is drawn."""

    name: str = ""


class OwnLessons:
    """Lessons that readers upload."""

    def __init__(self) -> None:
        self._by_owner = KeptByReader[Mapping[str, Sized]](
            limits.OWN_LESSONS_BYTES, lambda lessons: sum(size for _, size in lessons.values())
        )

    def of(self, owner: str) -> Mapping[str, Lesson]:
        """The lessons of this reader by name."""
        lessons = self._by_owner.of(owner) or {}
        return {name: lesson for name, (lesson, _) in lessons.items()}

    def add(self, owner: str, lesson: Lesson, size: int) -> None:
        """Add a lesson at the end; `size` is that of its file in bytes."""
        with self._by_owner.lock:
            lessons = dict(self._by_owner.of(owner) or {})
            lessons.pop(lesson.name, None)
            lessons[lesson.name] = lesson, size
            self._by_owner.put(owner, dict([*lessons.items()][-MOST_OWN_LESSONS:]))


KEPT, OWN_LESSONS = KeptSessions(), OwnLessons()
