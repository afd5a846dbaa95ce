"""Labels for rows, columns and chips: from tokens or plain strings, safe to draw."""

import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Protocol

from explorer.text import AnyTokenizer, PublishedTokenizer
from explorer.text.labels import cut
from explorer.text.token import Token
from explorer.text.token_groups import TokenGroup, bytes_in_words, token_groups

LONGEST = 200
"""Characters of a label that are sent to the browser; longer ones are cut."""


LAST, BYTE = 16, "<0x"
"""So many tokens before a candidate may be parts of its character."""

SIGNS = {" ": "␣", "\t": "⇥", "\n": "↵"}
"""Signs, present in the fonts, for common invisible characters."""


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
    """The label in visible characters: a control character becomes its picture."""
    if isinstance(label, VisibleText):
        return label
    text = str(label) if isinstance(label, str | int) else label.label
    return "".join(map(visible, cut(text, LONGEST))) or "∅"


@lru_cache(maxsize=4096)
def visible(character: str) -> str:
    """The character, or its sign or code if it is invisible or would reorder others."""
    code = ord(character)
    if character in SIGNS:
        return SIGNS[character]
    # Joiners belong to the characters around them (family emoji, Persian words).
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") and code not in (
        0x200C,
        0x200D,
    ):
        return f"<U+{code:04X}>"
    return character


def texts(labels: Sequence[Label]) -> list[str]:
    """The labels; that of a part of a character is `😀 1/4 <0xF0>`: what of, which, its bytes."""
    found = [text_of(label) for label in labels]
    for group in groups_of(labels):
        for at in range(group.first, group.last + 1):
            found[at] = _in_group(group, at, found[at])
    return found


def label_at(labels: Sequence[Label], place: int) -> str:
    """The one at `place`, as in `texts`: what it is a part of depends on those around it."""
    label = text_of(labels[place])
    groups = (group for group in groups_of(labels) if group.first <= place <= group.last)
    return next((_in_group(group, place, label) for group in groups), label)


def named_at(labels: Sequence[Label], place: int) -> str:
    """The one at `place` in a sentence: `“the” (3)`, since a text may have equal ones."""
    return f"“{label_at(labels, place)}” ({place})"


def _in_group(group: TokenGroup, place: int, label: str) -> str:
    number = place - group.first
    part = f"{text_of(group.parts[number])} {number + 1}/{len(group.parts)}"
    return f"{part} {label}" if group.is_cut else label


def candidate_text(label: str, before: Sequence[str] = ()) -> VisibleText:
    """The label of a token that may come next, after tokens of the labels `before`.

    One that ends a character names it, as in a text; one that is another part of a character
    says which: `byte 1/4 <0xF0>`.
    """
    said = bytes_in_words(label, before)
    if said:
        return VisibleText(f"{said} {text_of(label)}")
    if not label.startswith(BYTE):
        return VisibleText(text_of(label))
    tokens = [Token(0, each) for each in (*before[-LAST:], label)]
    return VisibleText(label_at(tokens, len(tokens) - 1))


def groups_of(labels: Sequence[Label]) -> tuple[TokenGroup, ...]:
    """The tokens that are parts of one character."""
    return token_groups(
        tuple(None if isinstance(one, str | int) or one.special else one.label for one in labels)
    )


def group_spans(labels: Sequence[Label]) -> list[list[int]]:
    """The first and the last token of every group, for the views that draw a bracket."""
    return [[group.first, group.last] for group in groups_of(labels)]


def specials(labels: Iterable[Label]) -> list[int]:
    """The positions of the special tokens."""
    return [at for at, one in enumerate(labels) if not isinstance(one, str | int) and one.special]


def labels_of(tokenizer: AnyTokenizer, ids: Sequence[int]) -> list[str]:
    """The label of each token; an ID that the vocabulary leaves free is `<50300>`."""
    if isinstance(tokenizer, PublishedTokenizer):
        return tokenizer.labels(ids)  # one question to its process
    used = tokenizer.vocab_size
    return [tokenizer.label(token) if token < used else f"<{token}>" for token in ids]
