"""The wire form of the steps of a text: each different piece once, each step as places in them.

The pieces of all steps grow with the square of the text and hardly differ from one
step to the next, so this is what lets a thousand characters through.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from explorer.text.limits import TextError
from explorer.text.merging import Unit
from explorer.text.published.engine import short
from explorer.text.step import AROUND, Piece, Step

MOST_PLACES = 1_000_000
"""Pieces of all steps together; more would not be sent and read in a moment."""

TOO_MANY = "it has too many steps to show; shorten it."
NONE_AROUND = "No special tokens are added: these are what the model reads."

Row = tuple[str, int, int, int | None, bool]
"""Label, start, end, number, special."""


class Collected:
    """The steps so far, every piece within the text."""

    def __init__(self, text: str) -> None:
        self._length = len(text)
        self._index: dict[Row, int] = {}
        self._units: dict[int, tuple[Unit, int]] = {}
        self._steps: list[dict[str, Any]] = []
        self._left = MOST_PLACES

    def add(
        self,
        action: str,
        rows: Iterable[Row],
        changed: Collection[int] = (),
        rank: int | None = None,
    ) -> None:
        """One more step; `changed` are the places in it of what it made."""
        self._add(action, [self._place(row) for row in rows], changed, rank)

    def units(
        self,
        action: str,
        words: Iterable[Iterable[Unit]],
        row: Callable[[Unit], Row],
        made: Collection[tuple[int, int]] = (),
        rank: int | None = None,
    ) -> None:
        """A step of merging: what is known already is looked up and not made again."""
        places: list[int] = []
        changed: list[int] = []
        for index, word in enumerate(words):
            for place, unit in enumerate(word):
                known = self._units.get(id(unit))
                if known is None:
                    known = self._units[id(unit)] = (unit, self._place(row(unit)))
                if (index, place) in made:
                    changed.append(len(places))
                places.append(known[1])
        self._add(action, places, changed, rank)

    def tokens(self, action: str, encoded: Mapping[str, Any]) -> None:
        """A step that made all of these tokens."""
        rows = rows_of(encoded)
        self.add(action, rows, range(len(rows)))

    def answer(self, encoded: Mapping[str, Any]) -> dict[str, Any]:
        """What is sent, the tokens that the model reads being the last step."""
        rows = rows_of(encoded)
        added = [
            place
            for place, (_, start, end, _, special) in enumerate(rows)
            if special and start == end
        ]
        self.add(AROUND if added else NONE_AROUND, rows, added)
        return {"pieces": list(self._index), "steps": self._steps}

    def _place(self, row: Row) -> int:
        label, start, end, number, special = row
        start = min(max(start, 0), self._length)
        end = min(max(end, start), self._length)
        return self._index.setdefault((short(label), start, end, number, special), len(self._index))

    def _add(
        self, action: str, places: list[int], changed: Collection[int], rank: int | None
    ) -> None:
        self._left -= len(places)
        if self._left < 0:
            raise TextError(TOO_MANY)
        self._steps.append(
            {"action": action, "places": places, "changed": list(changed), "rank": rank}
        )


def rows_of(encoded: Mapping[str, Any]) -> list[Row]:
    """The columns that an engine encodes, as rows."""
    columns = ("labels", "starts", "ends", "ids", "special")
    return [
        (label, start, end, number, bool(special))
        for label, start, end, number, special in zip(
            *[encoded[name] for name in columns], strict=True
        )
    ]


def received(answer: Mapping[str, Any]) -> tuple[Step, ...]:
    """The steps as the app reads them; those that did not change are one object in all steps."""
    pieces = [Piece(*row) for row in answer["pieces"]]
    return tuple(_step(pieces, step) for step in answer["steps"])


def _step(pieces: list[Piece], step: Mapping[str, Any]) -> Step:
    shown = [pieces[place] for place in step["places"]]
    for place in step["changed"]:
        shown[place] = replace(shown[place], changed=True)
    return Step(step["action"], tuple(shown), step["rank"])
