"""Labels for rows, columns and chips: from tokens or plain strings, safe to draw."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Protocol

from explorer.text.labels import cut
from explorer.text.token_groups import TokenGroup, token_groups

LONGEST = 200
"""Characters of a label that are sent to the browser; longer ones are cut."""


SIGNS = {" ": "␣", "\t": "⇥", "\n": "↵"}
"""Signs, present in the fonts, for common invisible characters."""


class Labelled(Protocol):
    """What a view reads of a token."""

    @property
    def label(self) -> str: ...

    @property
    def special(self) -> bool: ...


Label = Labelled | str | int


def text_of(label: Label) -> str:
    """The label in visible characters: a control character becomes its picture."""
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
        if group.is_cut:
            for number, part in enumerate(group.parts, 1):
                at = group.first + number - 1
                found[at] = f"{text_of(part)} {number}/{len(group.parts)} {found[at]}"
    return found


def groups_of(labels: Sequence[Label]) -> tuple[TokenGroup, ...]:
    """The tokens that are parts of one character."""
    return token_groups(
        [None if isinstance(one, str | int) or one.special else one.label for one in labels]
    )


def specials(labels: Iterable[Label]) -> list[int]:
    """The positions of the special tokens."""
    return [at for at, one in enumerate(labels) if not isinstance(one, str | int) and one.special]
