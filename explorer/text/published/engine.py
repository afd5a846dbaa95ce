"""What a tokenizer computes in the child process: the tokens of a text, and the steps to them.

The pieces of all steps grow with the square of the text, and few differ from one step to the
next. So each different piece is sent once, and each step as indices of pieces.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from explorer.text.checked_text import TextError
from explorer.text.published.tokenizer_families import Roles
from explorer.text.token import ADD_SPECIAL_TOKENS, TYPED, Piece, Token, TokenizerStep
from explorer.text.visible_text import cut, readable

MOST_TOKENS = 200_000
LONGEST_LABEL = 200
"""Characters of a label; a longer label is cut."""
MOST_PIECES = 1_000_000
"""Pieces of all steps together; sending and reading more would take too long."""

TOO_MANY_STEPS = "it has too many steps to show; shorten it."
NONE_AROUND = "No special tokens are added: these are what the model reads."
WORD_START = "▁"


@dataclass(frozen=True)
class EncodedToken:
    """One token of a library: `of` is the text it came from (0 or 1), None if it was added."""

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

    @classmethod
    def of(cls, roles: Roles, ids: Mapping[str, int], more: Mapping[int, str]) -> "SpecialTokens":
        """Those that are in the vocabulary; `more` are special tokens without a role."""
        role_ids = {role: ids[text] for role, text in roles.items() if text in ids}
        texts = {ids[text]: text for text in roles.values() if text in ids}
        return cls(role_ids, dict(more) | texts)

    @property
    def ids(self) -> frozenset[int]:
        """The IDs that are never part of a text. The unknown token is: it stands for typed text."""
        unknown = self.roles.get("unk")
        shared = [token_id for role, token_id in self.roles.items() if role != "unk"]
        return frozenset(i for i in self.texts if i != unknown or i in shared)


class Engine(ABC):
    """A tokenizer with labels, spans in the typed text and special tokens."""

    def __init__(self, kind: str, size: int, special: SpecialTokens) -> None:
        self.kind, self.size, self.special = kind, size, special
        self.special_ids = special.ids
        self.named: Mapping[str, str] = {}
        self.unfollowed: Sequence[str] = ()

    @abstractmethod
    def normalized(self, text: str) -> str:
        """The text as the vocabulary reads it."""

    @abstractmethod
    def around(self, text: str, pair: str | None) -> list[EncodedToken]:
        """The tokens of the text or pair, with the special tokens around them."""

    @abstractmethod
    def plain(self, text: str) -> list[EncodedToken]:
        """The tokens of the text alone."""

    @abstractmethod
    def prompt(self, text: str) -> list[EncodedToken]:
        """The tokens of a text whose special tokens are read as such."""

    @abstractmethod
    def decode(self, ids: Sequence[int]) -> str: ...

    @abstractmethod
    def piece_label(self, token_id: int) -> str | None:
        """The label of a token that is not special; None where the vocabulary has no such ID."""

    @abstractmethod
    def piece_id(self, entry: str) -> int | None:
        """The ID of an entry that is not special."""

    def facts(self) -> dict[str, Any]:
        """What the app asks once: kind, vocabulary size, special tokens and their roles, and the
        names of the settings that are not followed."""
        lowered = self.normalized("A")
        return {
            "kind": self.kind,
            "vocab_size": self.size,
            "lowercase": "a" in lowered and "A" not in lowered,
            "roles": dict(self.special.roles),
            "special_ids": sorted(self.special_ids),
            "unfollowed": list(self.unfollowed),
        }

    def encode(self, text: str, pair: str | None = None) -> list[Token]:
        return self.tokens(self.around(text, pair), text, pair or "")

    def encode_prompt(self, text: str) -> list[Token]:
        """The tokens of a text whose special tokens are read as such; none is added around it."""
        return self.tokens(self.prompt(text), text, marked=self.special_ids)

    def many_ids(self, texts: Sequence[str], special: bool) -> list[list[int]]:
        """The IDs of each text, with the special tokens around it or without."""
        encoded = [self.around(text, None) if special else self.plain(text) for text in texts]
        return [[token.id for token in tokens] for tokens in encoded]

    def steps(self, text: str) -> tuple[TokenizerStep, ...]:
        """The text, its pieces, and the tokens, where the library does not show how it splits."""
        collector = StepCollector(text)
        plain = self.tokens(self.plain(text), text)
        collector.tokens("Cut into the pieces that sentencepiece finds.", plain)
        return collector.finished(self.encode(text))

    def label(self, token_id: int) -> str:
        """How to show a token; an ID that the vocabulary does not use is `<50300>`."""
        if (special := self.special.texts.get(token_id)) is not None:
            return short_label(readable(special))
        label = self.piece_label(token_id)
        return f"<{token_id}>" if label is None else short_label(label)

    def id_of(self, entry: str) -> int | None:
        ids = (token_id for token_id, text in self.special.texts.items() if text == entry)
        special = next(ids, None)
        return self.piece_id(entry) if special is None else special

    def tokens(
        self,
        encoded: Sequence[EncodedToken],
        text: str,
        pair: str = "",
        marked: Collection[int] = (),
    ) -> list[Token]:
        """The tokens, with labels and spans within their text; the IDs in `marked` are special.

        An added token has an empty span where it was added.
        """
        if len(encoded) > MOST_TOKENS:
            raise TextError("it makes too many tokens of this text.")
        mask, label = self.special.roles.get("mask"), cache(self.label)
        lengths = len(text), len(pair)
        at, of, tokens = 0, 0, list[Token]()
        for token in encoded:
            start = end = at
            if token.of is not None:
                of, at = token.of, lengths[token.of]
                start, end = _within(token.start, token.end, at)
            special = token.of is None or token.id == mask or token.id in marked
            tokens.append(
                Token(token.id, label(token.id), start, end, special, token.segment, bool(of))
            )
        return tokens


def _within(start: int, end: int, length: int) -> tuple[int, int]:
    """The part of the span that is inside a text of this length."""
    start = min(max(start, 0), length)
    return start, min(max(end, start), length)


def short_label(label: str) -> str:
    return cut(label, LONGEST_LABEL)


class StepCollector:
    """Collects the steps, beginning with the typed text."""

    def __init__(self, text: str) -> None:
        self._length, self._left = len(text), MOST_PIECES
        self._steps = list[TokenizerStep]()
        self.add(TYPED, [self.piece(readable(text), 0, len(text))])

    def piece(
        self, label: str, start: int, end: int, token_id: int | None = None, special: bool = False
    ) -> Piece:
        """A piece with a short label, within the text."""
        return Piece(short_label(label), *_within(start, end, self._length), token_id, special)

    def add(
        self,
        action: str,
        pieces: Iterable[Piece],
        changed: Iterable[int] = (),
        rank: int | None = None,
    ) -> None:
        """Add a step; `changed` are the indices of its new pieces."""
        step_pieces = list(pieces)
        self._left -= len(step_pieces)
        if self._left < 0:
            raise TextError(TOO_MANY_STEPS)
        for place in changed:
            step_pieces[place] = replace(step_pieces[place], changed=True)
        self._steps.append(TokenizerStep(action, tuple(step_pieces), rank))

    def tokens(self, action: str, tokens: Sequence[Token]) -> None:
        """Add a step in which all of these tokens are new."""
        self.add(action, pieces_of(tokens), range(len(tokens)))

    def finished(self, tokens: Sequence[Token]) -> tuple[TokenizerStep, ...]:
        """All steps; the last one has the tokens that the model reads."""
        added = [at for at, t in enumerate(tokens) if t.special and t.start == t.end]
        self.add(ADD_SPECIAL_TOKENS if added else NONE_AROUND, pieces_of(tokens), added)
        return tuple(self._steps)


def pieces_of(tokens: Iterable[Token]) -> list[Piece]:
    return [Piece(token.label, token.start, token.end, token.id, token.special) for token in tokens]


def rows_of(data: Iterable[Token | Piece]) -> list[list[Any]]:
    """Plain data as JSON has it: `Token(*row)` is the token again."""
    return [list(vars(item).values()) for item in data]


def steps_to_json(steps: Sequence[TokenizerStep]) -> dict[str, Any]:
    """The steps as JSON: each different piece once, and each step as indices of pieces."""
    pieces = {id(piece): piece for step in steps for piece in step.pieces}
    places = {key: place for place, key in enumerate(pieces)}
    return {
        "pieces": rows_of(pieces.values()),
        "steps": [
            (step.action, [places[id(piece)] for piece in step.pieces], step.rank) for step in steps
        ],
    }


def steps_from_json(answer: Mapping[str, Any]) -> tuple[TokenizerStep, ...]:
    """The steps as the app reads them; a piece that did not change is one object in all steps."""
    pieces = [Piece(*row) for row in answer["pieces"]]
    return tuple(
        TokenizerStep(action, tuple(pieces[place] for place in places), rank)
        for action, places, rank in answer["steps"]
    )
