"""What the child needs of a library, and the one wire form of an encoded text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from explorer.text.labels import cut
from explorer.text.limits import TextError
from explorer.text.published.roles import Roles

MOST_TOKENS = 200_000
LONGEST_LABEL = 200
"""Characters of a label; a published token is rarely longer, and none is shown longer."""


class Engine(Protocol):
    def facts(self) -> dict[str, Any]:
        """What the app is told once: kind, vocabulary size, special tokens and their roles."""

    def encode(self, text: str, pair: str | None) -> dict[str, Any]: ...
    def steps(self, text: str) -> dict[str, Any]:
        """Every step from the text to what `encode` gives, in the form of `stepping`."""

    def decode(self, ids: Sequence[int]) -> str: ...
    def label(self, token_id: int) -> str: ...
    def id_of(self, entry: str) -> int | None: ...


@dataclass(frozen=True)
class Read:
    """One token as a library gives it: `of` is the text it came from (0 or 1), None if added."""

    id: int
    start: int = 0
    end: int = 0
    of: int | None = None
    segment: int = 0


@dataclass(frozen=True)
class Special:
    """The special tokens of a tokenizer: their numbers by role, their texts by number."""

    roles: Mapping[str, int]
    texts: Mapping[int, str]

    @property
    def ids(self) -> set[int]:
        """What is never part of a text. An unknown token is: it stands for something typed."""
        unknown = self.roles.get("unk")
        shared = [number for role, number in self.roles.items() if role != "unk"]
        return {number for number in self.texts if number != unknown or number in shared}


def special_of(roles: Roles, numbers: Mapping[str, int], more: Mapping[int, str]) -> Special:
    """The special tokens that are in the vocabulary, `more` being those without a role."""
    found = {role: numbers[text] for role, text in roles.items() if text in numbers}
    texts = {numbers[text]: text for _, text in roles.items() if text in numbers}
    return Special(found, dict(more) | texts)


def wire(
    tokens: Sequence[Read], texts: Sequence[str], engine: Engine, special: Special
) -> dict[str, Any]:
    """The columns that are sent, every span within its text.

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
        "special": [int(token.of is None or token.id == mask) for token in tokens],
        "segments": [token.segment for token in tokens],
        "second": [second for _, _, second in spans],
    }


def free(token_id: int) -> str:
    """The label of a number that the vocabulary leaves free."""
    return f"<{token_id}>"


def short(label: str) -> str:
    return cut(label, LONGEST_LABEL)
