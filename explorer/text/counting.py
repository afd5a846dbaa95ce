"""Where a text may be cut so that no word is."""

from __future__ import annotations

import re

SAFE = re.compile(r"(?<=\S)(?= \S)|(?<=\S\n)(?=\S)")
"""Where no word of GPT-2's pattern goes on, nor of BERT's."""

PART = 20_000


def in_parts(text: str, longest: int = PART) -> list[str]:
    """The text cut where no word goes on: the library learns the same of it, sooner."""
    parts, begun = [], 0
    while len(text) - begun > longest:
        cut = SAFE.search(text, begun + longest)
        if cut is None:
            break
        parts.append(text[begun : cut.start()])
        begun = cut.start()
    return [*parts, text[begun:]]


def beginning(text: str, most: int) -> str:
    """At most so many characters and only whole words, unless the first is longer."""
    if len(text) <= most:
        return text
    cuts = [cut.start() for cut in SAFE.finditer(text[: most + 2])]
    return text[: max((cut for cut in cuts if cut <= most), default=most)]
