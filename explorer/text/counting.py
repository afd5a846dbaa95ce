"""The words of a long text and how often each stands in it, as the library splits them."""

from __future__ import annotations

import re
from collections import Counter

from tokenizers.pre_tokenizers import PreTokenizer

PLAIN = re.compile(
    r"'(?:s|t|re|ve|m|ll|d)| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+", re.ASCII
)
"""GPT-2's pattern for texts of ASCII alone."""

SAFE = re.compile(r"(?<=\S)(?= \S)|(?<=\S\n)(?=\S)")
"""Where no word of GPT-2's pattern goes on: a text may be cut there."""

PART = 20_000


def byte_words(text: str, splitter: PreTokenizer) -> Counter[str]:
    """Byte-level words. ASCII is split here, which is faster; the rest by the library.

    `splitter` is byte-level; a space stands at the front of the word behind it.
    """
    if text.isascii():
        return Counter(PLAIN.findall(text))
    found: Counter[str] = Counter()
    for part, times in Counter(SAFE.split(text)).items():
        for _, (start, end) in splitter.pre_tokenize_str(part):
            found[part[start:end]] += times
    return found


def spaced_words(text: str, splitter: PreTokenizer) -> Counter[str]:
    """The words of a splitter for which every space ends a word."""
    found: Counter[str] = Counter()
    for part, times in Counter(text.split()).items():
        for word, _ in splitter.pre_tokenize_str(part):
            found[word] += times
    return found


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
