"""The few children that are kept: those used last, one for each tokenizer.

A tokenizer whose child was let go gets a new one when it is used again, so that
any number of them may be open while only a few processes are there.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from explorer.text.limits import TextError
from explorer.text.published.process import Child
from explorer.text.published.tokenizer_files import Source, opened

MOST = 4
LONGEST_WAIT = 20.0


class _Place:
    """One of the few; `busy` while a thread speaks with its child."""

    def __init__(self) -> None:
        self.child: Child | None = None
        self.busy = True


class Keep:
    """Hands out children, one thread at a time for each, and lets the oldest idle one go."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._changed = threading.Condition()
        self._places: OrderedDict[Source, _Place] = OrderedDict()

    @contextmanager
    def child(self, source: Source) -> Iterator[Child]:
        """The tokenizer's child, started when it is not there; Fault when it cannot be."""
        place = self._take(source)
        try:
            if place.child is None or not place.child.alive:
                if place.child is not None:
                    place.child.close()
                place.child = None
                place.child = _start(source)
            yield place.child
        finally:
            self._give_back(source, place)

    def close(self) -> None:
        """End every child that nobody speaks with."""
        with self._changed:
            for source, place in list(self._places.items()):
                if not place.busy:
                    self._let_go(source)

    def __len__(self) -> int:
        return len(self._places)

    def _take(self, source: Source) -> _Place:
        deadline = time.monotonic() + LONGEST_WAIT
        with self._changed:
            while True:
                place = self._places.get(source)
                if place is not None and not place.busy:
                    place.busy = True
                    self._places.move_to_end(source)
                    return place
                if place is None and self._room():
                    place = self._places[source] = _Place()
                    return place
                if not self._changed.wait(deadline - time.monotonic()):
                    raise TextError("Many tokenizers are in use just now; try again in a moment.")

    def _room(self) -> bool:
        """Whether one more fits, once the idle one that was used longest ago has gone."""
        if len(self._places) < self._most:
            return True
        idle = next((source for source, place in self._places.items() if not place.busy), None)
        if idle is None:
            return False
        self._let_go(idle)
        return True

    def _let_go(self, source: Source) -> None:
        place = self._places.pop(source)
        if place.child is not None:
            place.child.close()

    def _give_back(self, source: Source, place: _Place) -> None:
        with self._changed:
            place.busy = False
            if place.child is None or not place.child.alive:
                self._let_go(source)
            self._changed.notify_all()


def opening_seconds(source: Source) -> float:
    """How much computing it may take to open: real vocabularies are large, bombs are small."""
    return 0.9 + source.bytes / 6_000_000


def _start(source: Source) -> Child:
    with opened(source) as files:
        return Child(files, source.family, opening_seconds(source))


KEEP = Keep()
atexit.register(KEEP.close)
