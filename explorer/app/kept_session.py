"""The session that a reader keeps: views in an order, bounded by reader and for all readers.

It lies in this process, by its reader, so a reload and another tab find it. What the process
forgets (it was started again, or too much was kept) the reader's browser still has a list of:
addresses, titles and notes, without the pictures.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

from explorer.app.limits import KEPT_BYTES, KEPT_BYTES_OF_READER, KEPT_VIEWS
from explorer.export.kept_view import LONGEST_ADDRESS, KeptView, one_line

NEW = "Kept session"


@dataclass(frozen=True)
class KeptSession:
    """Its title and its views; the same until another takes its place."""

    title: str = NEW
    views: tuple[KeptView, ...] = ()

    @property
    def size(self) -> int:
        """Bytes that it holds here."""
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
        """Keep it as the last; why not, in a sentence, or nothing."""
        with self._lock:
            kept = self._by_owner.get(owner, KeptSession())
            again = [old for old in kept.views if old.address == view.address and not old.is_drawn]
            views = [view if old in again else old for old in kept.views]
            if not again:
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

    def change(self, owner: str, views: Iterable[KeptView]) -> None:
        """Keep these instead: fewer, in another order, or with other words."""
        with self._lock:
            kept = self._by_owner.get(owner, KeptSession())
            known = {view.id for view in kept.views}
            left = tuple(view for view in views if view.id in known)
            self._put(owner, KeptSession(kept.title, left))

    def take_back(self, owner: str, remembered: object) -> None:
        """The list that the browser remembers, where this process knows nothing of its reader."""
        found = read_list(remembered)
        with self._lock:
            if owner not in self._by_owner and found is not None:
                self._put(owner, found)

    def _put(self, owner: str, kept: KeptSession) -> None:
        self._by_owner[owner] = kept
        self._by_owner.move_to_end(owner)
        while len(self._by_owner) > 1 and not KEPT_BYTES.allows(
            sum(each.size for each in self._by_owner.values())
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
    if not is_ours or len(address) > LONGEST_ADDRESS or not address.isprintable():
        return None
    return KeptView("", address).called(title, note)


KEPT = KeptSessions()
