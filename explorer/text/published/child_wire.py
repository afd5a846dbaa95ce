"""What an engine gives, and its wire form: the tokens of a text, and the steps to them.

The pieces of all steps grow with the square of the text and hardly differ from one step to
the next. So each different piece is sent once, and each step as places among them.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from explorer.text.checked_text import TextError
from explorer.text.labels import cut
from explorer.text.merging import Unit
from explorer.text.published.roles import Roles
from explorer.text.token import ADD_SPECIAL_TOKENS, Piece, TokenizerStep

MOST_TOKENS = 200_000
LONGEST_LABEL = 200
"""Characters of a label; a published token is rarely longer, and none is shown longer."""


class Engine(Protocol):
    @property
    def special(self) -> "SpecialTokens": ...
    def facts(self) -> dict[str, Any]:
        """What the app is told once: kind, vocabulary size, special tokens and their roles."""

    def encode(self, text: str, pair: str | None) -> dict[str, Any]: ...
    def many_ids(self, texts: Sequence[str], special: bool) -> list[list[int]]:
        """The IDs of each text, with the special tokens around it or without."""

    def encode_prompt(self, text: str) -> dict[str, Any]:
        """A text whose special tokens are read as such; none is added around it."""

    def steps(self, text: str) -> dict[str, Any]:
        """Every step from the text to what `encode` gives, in wire form."""

    def decode(self, ids: Sequence[int]) -> str: ...
    def label(self, token_id: int) -> str: ...
    def id_of(self, entry: str) -> int | None: ...


@dataclass(frozen=True)
class EncodedToken:
    """One token as a library gives it: `of` is the text it came from (0 or 1), None if added."""

    id: int
    start: int = 0
    end: int = 0
    of: int | None = None
    segment: int = 0


@dataclass(frozen=True)
class SpecialTokens:
    """The special tokens of a tokenizer: their IDs by role, their texts by ID."""

    roles: Mapping[str, int]
    texts: Mapping[int, str]

    @property
    def ids(self) -> set[int]:
        """The IDs that are never part of a text. The unknown token is: it stands for typed text."""
        unknown = self.roles.get("unk")
        shared = [number for role, number in self.roles.items() if role != "unk"]
        return {number for number in self.texts if number != unknown or number in shared}


def special_tokens(
    roles: Roles, numbers: Mapping[str, int], more: Mapping[int, str]
) -> SpecialTokens:
    """The special tokens that are in the vocabulary, `more` being those without a role."""
    found = {role: numbers[text] for role, text in roles.items() if text in numbers}
    texts = {numbers[text]: text for _, text in roles.items() if text in numbers}
    return SpecialTokens(found, dict(more) | texts)


Strips = Mapping[str, tuple[bool, bool]]
"""For special tokens, whether the blanks before and after one belong to it."""


def prompt_parts(
    text: str, special: SpecialTokens, strips: Strips
) -> Iterator[tuple[int, int, int | None]]:
    """The text in parts: their spans, and the ID of each that is a special token."""
    ids = {written: number for number, written in special.texts.items() if written}
    written = sorted(ids, key=len, reverse=True)
    blanks = [strips.get(each, (False, False)) for each in written]
    ways = [
        f"({left * _BLANKS}{re.escape(each)}{right * _BLANKS})"
        for each, (left, right) in zip(written, blanks, strict=True)
    ]
    at = 0
    for found in re.finditer("|".join(ways), text) if ways else ():
        if found.start() > at:
            yield at, found.start(), None
        yield *found.span(), ids[written[(found.lastindex or 1) - 1]]
        at = found.end()
    if at < len(text):
        yield at, len(text), None


_BLANKS = r"\s*"


def to_wire(
    tokens: Sequence[EncodedToken],
    texts: Sequence[str],
    engine: Engine,
    special: SpecialTokens,
    marked: Collection[int] = (),
) -> dict[str, Any]:
    """The columns that are sent, every span within its text; the IDs that are `marked` are special.

    A token that was added stands where it was added: before the text, or after
    the one that came last.
    """
    if len(tokens) > MOST_TOKENS:
        raise TextError("it makes too many tokens of this text.")
    mask = special.roles.get("mask")
    at, of, spans = 0, 0, []
    for token in tokens:
        if token.of is None:
            spans.append((at, at, of))
            continue
        of = token.of
        at = len(texts[of])
        start = min(max(token.start, 0), at)
        spans.append((start, min(max(token.end, start), at), of))
    labels = {number: engine.label(number) for number in {token.id for token in tokens}}
    return {
        "ids": [token.id for token in tokens],
        "labels": [labels[token.id] for token in tokens],
        "starts": [start for start, _, _ in spans],
        "ends": [end for _, end, _ in spans],
        "special": [
            int(token.of is None or token.id == mask or token.id in marked) for token in tokens
        ],
        "segments": [token.segment for token in tokens],
        "second": [second for _, _, second in spans],
    }


def unused_label(token_id: int) -> str:
    """The label of an ID that the vocabulary does not use."""
    return f"<{token_id}>"


def short_label(label: str) -> str:
    return cut(label, LONGEST_LABEL)


MOST_PIECES = 1_000_000
"""Pieces of all steps together; more would not be sent and read in a moment."""

TOO_MANY_STEPS = "it has too many steps to show; shorten it."
NONE_AROUND = "No special tokens are added: these are what the model reads."

Row = tuple[str, int, int, int | None, bool]
"""Label, start, end, token ID, special."""


class StepCollector:
    """The steps so far, every piece within the text."""

    def __init__(self, text: str) -> None:
        self._length = len(text)
        self._index: dict[Row, int] = {}
        self._units: dict[int, tuple[Unit, int]] = {}
        self._steps: list[dict[str, Any]] = []
        self._left = MOST_PIECES

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
        """A merge step; the rows of known units are looked up."""
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
        self.add(ADD_SPECIAL_TOKENS if added else NONE_AROUND, rows, added)
        return {"pieces": list(self._index), "steps": self._steps}

    def _place(self, row: Row) -> int:
        label, start, end, number, special = row
        start = min(max(start, 0), self._length)
        end = min(max(end, start), self._length)
        return self._index.setdefault(
            (short_label(label), start, end, number, special), len(self._index)
        )

    def _add(
        self, action: str, places: list[int], changed: Collection[int], rank: int | None
    ) -> None:
        self._left -= len(places)
        if self._left < 0:
            raise TextError(TOO_MANY_STEPS)
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


def from_wire(answer: Mapping[str, Any]) -> tuple[TokenizerStep, ...]:
    """The steps as the app reads them; those that did not change are one object in all steps."""
    pieces = [Piece(*row) for row in answer["pieces"]]
    return tuple(_step(pieces, step) for step in answer["steps"])


def _step(pieces: list[Piece], step: Mapping[str, Any]) -> TokenizerStep:
    shown = [pieces[place] for place in step["places"]]
    for place in step["changed"]:
        shown[place] = replace(shown[place], changed=True)
    return TokenizerStep(step["action"], tuple(shown), step["rank"])
