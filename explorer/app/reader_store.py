"""What this process keeps for each reader: a session of views in an order, and their own lessons.

A reload and another tab find both by the reader. Of a session that the process forgets (it was
started again, or too much was kept) the reader's browser still has a list: addresses, titles and
notes, without the pictures.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Lock
from typing import Any

from cachetools import LRUCache

from explorer.export.kept_view import ADDRESS_TOO_LONG, LONGEST_VIEW_ADDRESS, KeptView, one_line
from explorer.lessons.lesson import Lesson
from explorer.system.limits import KEPT_BYTES, KEPT_BYTES_OF_READER, KEPT_VIEWS, OWN_LESSONS_BYTES

NEW = "Kept session"
LEAST_BYTES = 10_000
"""That a session counts, so that there are not too many of those that hold nothing."""


@dataclass(frozen=True)
class KeptSession:
    """Its title and its views; the same until another takes its place."""

    title: str = NEW
    views: tuple[KeptView, ...] = ()

    @cached_property
    def size(self) -> int:
        """Bytes that its views hold here."""
        return sum(view.size for view in self.views)

    def listed(self) -> dict[str, Any]:
        """What the browser remembers of it."""
        views = [[view.address, view.title, view.note] for view in self.views]
        return {"title": self.title, "views": views}


class KeptSessions:
    """Those of all readers, by their owner: see `explorer.app.reader`."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._by_owner: OrderedDict[str, KeptSession] = OrderedDict()

    def of(self, owner: str) -> KeptSession | None:
        """None where this process knows none of this reader."""
        with self._lock:
            return self._by_owner.get(owner)

    def add(self, owner: str, view: KeptView) -> str:
        """Keep it as the last, or as the picture of a view that has none any more.

        Why not, in a sentence, or nothing.
        """
        if len(view.address) > LONGEST_VIEW_ADDRESS:
            return ADDRESS_TOO_LONG
        with self._lock:
            kept = self._by_owner.get(owner, KeptSession())
            views = [*kept.views]
            for at, old in enumerate(views):
                if old.address == view.address and not old.is_drawn:
                    views[at] = replace(view, title=old.title, note=old.note, id=old.id)
                    break
            else:
                views.append(view)
            if not KEPT_VIEWS.allows(len(views)):
                return KEPT_VIEWS.refusal(len(views))
            size = sum(each.size for each in views)
            if not KEPT_BYTES_OF_READER.allows(size):
                return KEPT_BYTES_OF_READER.refusal(size)
            self._put(owner, KeptSession(kept.title, tuple(views)))
        return ""

    def call(self, owner: str, title: str) -> None:
        """Give the session this title."""
        with self._lock:
            kept = self._by_owner.get(owner, KeptSession())
            self._put(owner, KeptSession(one_line(title), kept.views))

    def rename(
        self, owner: str, view_id: str, *, title: str | None = None, note: str | None = None
    ) -> None:
        """Give the view of this id these words; the other stays what it has become meanwhile."""

        def change(views: list[KeptView], at: int) -> None:
            old = views[at]
            views[at] = old.called(
                old.title if title is None else title, old.note if note is None else note
            )

        self._change(owner, view_id, change)

    def move(self, owner: str, view_id: str, by: int) -> None:
        """Put the view of this id so many places on, or to the end where there are fewer."""
        self._change(owner, view_id, lambda views, at: views.insert(max(0, at + by), views.pop(at)))

    def remove(self, owner: str, view_id: str) -> None:
        """Keep the view of this id no longer."""
        self._change(owner, view_id, lambda views, at: views.__delitem__(at))

    def take_back(self, owner: str, remembered: object) -> None:
        """The list that the browser remembers, where this process knows nothing of its reader."""
        session = read_list(remembered)
        with self._lock:
            if owner not in self._by_owner and session is not None:
                self._put(owner, session)

    def _change(
        self, owner: str, view_id: str, change: Callable[[list[KeptView], int], None]
    ) -> None:
        """Change the views at the place of this one; nothing where another tab has removed it."""
        with self._lock:
            kept = self._by_owner.get(owner, KeptSession())
            for at, view in enumerate(kept.views):
                if view.id == view_id:
                    views = [*kept.views]
                    change(views, at)
                    self._put(owner, replace(kept, views=tuple(views)))

    def _put(self, owner: str, kept: KeptSession) -> None:
        self._by_owner[owner] = kept
        self._by_owner.move_to_end(owner)
        while len(self._by_owner) > 1 and not KEPT_BYTES.allows(
            sum(max(LEAST_BYTES, each.size) for each in self._by_owner.values())
        ):
            self._by_owner.popitem(last=False)


def read_list(remembered: object) -> KeptSession | None:
    """A session of what a browser has sent, which may be anything: what is no view is left out."""
    if not isinstance(remembered, Mapping) or not isinstance(remembered.get("views"), list):
        return None
    rows: Sequence[object] = remembered["views"][: KEPT_VIEWS.most]
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


KEPT = KeptSessions()


MOST_OWN_LESSONS = 10
"""Lessons of one reader; another takes the place of the first."""
Sized = tuple[Lesson, int]


@dataclass
class BeginLesson:
    """The lesson that begins as soon as the page Lessons is there."""

    name: str = ""


class OwnLessons:
    """Lessons that readers upload; those of the reader who used theirs longest ago leave first."""

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
