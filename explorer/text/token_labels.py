"""Labels for rows, columns and chips: from tokens or plain strings, safe to draw.

Tokens that are parts of one visible character, such as an emoji of four tokens, form a group.
Groups are derived from the labels, where a byte that is no whole character is `<0xF0>`, so this
works for typed and for generated tokens.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Protocol

from explorer.text import AnyTokenizer, PublishedTokenizer
from explorer.text.token import Token
from explorer.text.visible_text import (
    NEWLINE,
    RETURN,
    SPACE,
    TAB,
    cut,
    in_quotes,
    readable_character,
)

JOINERS = ("\u200c", "\u200d")
PIECE, DOTTED = "##", "◌"
CONJUNCTS = ("DEVANAGARI", "BENGALI", "GUJARATI", "ORIYA", "TELUGU", "MALAYALAM")
"""Scripts whose virama joins two consonants into one sign."""
MOST_IN_GROUP = 4
"""Bytes of a character in UTF-8."""
VIRAMA = 9
WRITTEN = re.compile(r"<0x([0-9A-F]{2})>|<U\+([0-9A-F]{4,6})>")
VISIBLE = str.maketrans({SPACE: " ", NEWLINE: "\n", RETURN: "\r", TAB: "\t"})


@dataclass(frozen=True)
class TokenGroup:
    """The tokens from `first` to `last`, which share `characters`.

    `parts` has the characters of each token. `is_cut`: a token alone does not show its character,
    since it holds bytes, or a part of a flag or of a joined emoji.
    """

    first: int
    last: int
    characters: str
    parts: tuple[str, ...]
    is_cut: bool


@lru_cache(maxsize=64)
def token_groups(labels: tuple[str | None, ...]) -> tuple[TokenGroup, ...]:
    """The groups of two or more tokens; None replaces the label of a token without text."""
    if not any(label and (not label.isascii() or WRITTEN.search(label)) for label in labels):
        return ()
    groups: list[TokenGroup] = []
    start = 0
    for at in range(len(labels) + 1):
        if at == len(labels) or labels[at] is None:
            groups += _groups_of([label or "" for label in labels[start:at]], start)
            start = at + 1
    return tuple(groups)


def bytes_in_words(label: str, before: Sequence[str] = ()) -> str:
    """Which bytes of a character a token has, if it begins or ends inside one.

    `byte 1/4` or `bytes 2 to 3/4`; `later byte` where the tokens `before` do not begin the
    character. Empty for a token of whole characters.
    """
    if not WRITTEN.search(label):
        return ""
    own = _bytes_of(label)
    begun = _incomplete_bytes(b"".join(map(_bytes_of, before[-MOST_IN_GROUP:])))
    ends = _incomplete_bytes(begun + own)
    if ends and own:
        first, count = max(1, len(ends) - len(own) + 1), _bytes_led_by(ends[0])
        places = f"byte {first}" if first == len(ends) else f"bytes {first} to {len(ends)}"
        return f"{places}/{count}"
    is_later = not begun and own and 0x80 <= own[0] <= 0xBF
    return "" if not is_later else "later byte" if len(own) == 1 else "later bytes"


def _incomplete_bytes(data: bytes) -> bytes:
    """The bytes at the end that begin a character without completing it."""
    for back in range(1, min(MOST_IN_GROUP, len(data) + 1)):
        if count := _bytes_led_by(data[-back]):
            return data[-back:] if count > back else b""
    return b""


def _bytes_led_by(byte: int) -> int:
    """The length in bytes of a character that begins with this byte; 0 where none does."""
    bounds = ((0x00, 0x7F), (0xC2, 0xDF), (0xE0, 0xEF), (0xF0, 0xF4))
    return next((count for count, (low, high) in enumerate(bounds, 1) if low <= byte <= high), 0)


def clusters(text: str) -> list[str]:
    """The characters of a text as a reader counts them: grapheme clusters."""
    graphemes: list[str] = []
    for character in text:
        if graphemes and _continues(graphemes[-1], character):
            graphemes[-1] += character
        else:
            graphemes.append(character)
    return graphemes


def _groups_of(labels: list[str], offset: int) -> list[TokenGroup]:
    """The groups among labels that follow each other; `offset` is the place of the first."""
    pieces = [_bytes_of(label) for label in labels]
    text = b"".join(pieces).decode("utf-8", "surrogateescape")
    graphemes = clusters(text)
    ends = [0, *accumulate(len(_to_bytes(grapheme)) for grapheme in graphemes)]
    inside = {0, *accumulate(len(_to_bytes(character)) for character in text)}
    bounds = [0, *accumulate(map(len, pieces))]
    whole, groups, first = set(ends), list[TokenGroup](), 0
    for at in range(1, len(pieces) + 1):
        if bounds[at] not in whole:
            continue
        if at - first > 1:
            spans = [
                (bisect_right(ends, bounds[index]) - 1, bisect_left(ends, bounds[index + 1]))
                for index in range(first, at)
            ]
            parts = tuple("".join(graphemes[low:high]) for low, high in spans)
            characters = "".join(graphemes[spans[0][0] : spans[-1][1]])
            is_cut = any(bound not in inside for bound in bounds[first:at])
            joined = any(c == JOINERS[1] or _is_regional(c) for c in characters)
            group = (offset + first, offset + at - 1, characters, parts, is_cut or joined)
            groups.append(TokenGroup(*group))
        first = at
    return groups


def _bytes_of(label: str) -> bytes:
    if label.startswith(PIECE) and len(label) > len(PIECE):
        label = label.removeprefix(PIECE)
    if label.startswith(DOTTED) and len(label) > 1:
        label = label.removeprefix(DOTTED)
    data, end = b"", 0
    for match in WRITTEN.finditer(label):
        data += _to_bytes(label[end : match.start()].translate(VISIBLE))
        byte, code = match.groups()
        point = int(code, 16) if code else 0
        data += bytes([int(byte, 16)]) if byte else _to_bytes(chr(min(point, 0x10FFFF)))
        end = match.end()
    return data + _to_bytes(label[end:].translate(VISIBLE))


def _to_bytes(text: str) -> bytes:
    """The text in UTF-8, with a byte for each surrogate that stands for one."""
    return b"".join(
        bytes([ord(character) - 0xDC00])
        if 0xDC80 <= ord(character) <= 0xDCFF
        else character.encode("utf-8", "replace")
        for character in text
    )


def _continues(cluster: str, character: str) -> bool:
    """Whether the character belongs to the cluster before it (Unicode Annex 29, in short)."""
    code, before = ord(character), cluster[-1]
    if 0xD800 <= ord(before) <= 0xDFFF or before.isspace():
        return False
    if character in JOINERS or unicodedata.category(character) in ("Mn", "Mc", "Me"):
        return True
    if 0x1F3FB <= code <= 0x1F3FF or 0xE0020 <= code <= 0xE007F or 0x1160 <= code <= 0x11FF:
        return True
    if before == JOINERS[1]:
        return unicodedata.category(character) == "So"
    if _is_regional(character):
        return len(cluster) == 1 and _is_regional(before)
    is_virama = unicodedata.combining(before) == VIRAMA
    return is_virama and unicodedata.name(character, "").startswith(CONJUNCTS)


def _is_regional(character: str) -> bool:
    return 0x1F1E6 <= ord(character) <= 0x1F1FF


LONGEST = 200
"""Characters of a label that are sent to the browser; longer ones are cut."""


LAST, BYTE = 16, "<0x"
"""The last 16 tokens before a candidate may be parts of its character."""


class Labelled(Protocol):
    """What a view reads of a token."""

    @property
    def label(self) -> str: ...

    @property
    def special(self) -> bool: ...


Label = Labelled | str | int


class VisibleText(str):
    """A label that is made of visible characters and words already."""

    __slots__ = ()


def text_of(label: Label) -> str:
    """The label in visible characters; joiners belong to those around them (emoji, Persian)."""
    if isinstance(label, VisibleText):
        return label
    text = str(label) if isinstance(label, str | int) else label.label
    visible = (c if c in JOINERS else readable_character(c) for c in cut(text, LONGEST))
    return "".join(visible) or "∅"


def texts(labels: Sequence[Label]) -> list[str]:
    """The labels; a part of a character is `😀 1/4 <0xF0>`: the character, the part, its bytes."""
    visible = [text_of(label) for label in labels]
    for group in groups_of(labels):
        for at in range(group.first, group.last + 1):
            visible[at] = _in_group(group, at, visible[at])
    return visible


def label_at(labels: Sequence[Label], place: int) -> str:
    """The label at `place`, as in `texts`: its group depends on the labels around it."""
    label = text_of(labels[place])
    groups = (group for group in groups_of(labels) if group.first <= place <= group.last)
    return next((_in_group(group, place, label) for group in groups), label)


def named_at(labels: Sequence[Label], place: int) -> str:
    """The token at `place` in a sentence: `“the” (3)`, since a text may have equal tokens."""
    return f"{in_quotes(label_at(labels, place))} ({place})"


def _in_group(group: TokenGroup, place: int, label: str) -> str:
    number = place - group.first
    part = f"{text_of(group.parts[number])} {number + 1}/{len(group.parts)}"
    return f"{part} {label}" if group.is_cut else label


def candidate_text(label: str, before: Sequence[str] = ()) -> VisibleText:
    """The label of a token that may come next, after tokens with the labels `before`.

    A token that completes a character names it, as in a text; any other part of a character says
    which part it is: `<0xF0> byte 1/4`.
    """
    which_bytes = bytes_in_words(label, before)
    if which_bytes:
        return VisibleText(f"{text_of(label)} {which_bytes}")
    if not label.startswith(BYTE):
        return VisibleText(text_of(label))
    tokens = [Token(0, text) for text in (*before[-LAST:], label)]
    return VisibleText(label_at(tokens, len(tokens) - 1))


def groups_of(labels: Sequence[Label]) -> tuple[TokenGroup, ...]:
    """The tokens that are parts of one character."""
    names = (None if isinstance(t, str | int) or t.special else t.label for t in labels)
    return token_groups(tuple(names))


def group_spans(labels: Sequence[Label]) -> list[list[int]]:
    """The first and the last token of every group, for the views that draw a bracket."""
    return [[group.first, group.last] for group in groups_of(labels)]


def specials(labels: Iterable[Label]) -> list[int]:
    return [at for at, t in enumerate(labels) if not isinstance(t, str | int) and t.special]


def written(tokenizer: AnyTokenizer, token: Token) -> str:
    """The characters of a token in a text, with a space where it begins a word."""
    begins = tokenizer.kind in ("words", "wordpiece") and not token.label.startswith(PIECE)
    label = token.label.removeprefix(PIECE if tokenizer.kind == "wordpiece" else "")
    return " " * begins + label.translate(VISIBLE)


def labels_of(tokenizer: AnyTokenizer, ids: Sequence[int]) -> list[str]:
    """The label of each token; an ID that the vocabulary leaves free is `<50300>`."""
    if isinstance(tokenizer, PublishedTokenizer):
        return tokenizer.labels(ids)  # one request to its process
    used = tokenizer.vocab_size
    return [tokenizer.label(token) if token < used else f"<{token}>" for token in ids]
