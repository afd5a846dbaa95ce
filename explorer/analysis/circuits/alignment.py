"""Two texts side by side: which words of one have another number of tokens in the other."""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from explorer.text import Token
from explorer.text.labels import cut, readable

WORD = re.compile(r"\s*\S+|\s+")
MOST_NAMED, LONGEST_WORD = 3, 30

Word = tuple[str, int]
"""A word with the white space before it, and how many tokens end in it."""


def differing(clean: Sequence[Token], corrupted: Sequence[Token]) -> tuple[int, ...]:
    """The places at which two texts of as many tokens have different ones."""
    both = zip(clean, corrupted, strict=True)
    return tuple(place for place, (one, other) in enumerate(both) if one.id != other.id)


def why_unequal(texts: tuple[str, str], tokens: tuple[Sequence[Token], Sequence[Token]]) -> str:
    """Which words make the difference in length, in a sentence; empty where there is none."""
    counts = tuple(len(each) for each in tokens)
    if counts[0] == counts[1]:
        return ""
    uneven = list(_uneven(_words(texts[0], tokens[0]), _words(texts[1], tokens[1])))
    named = "; ".join(uneven[:MOST_NAMED])
    more = f"; and {len(uneven) - MOST_NAMED} more" if len(uneven) > MOST_NAMED else ""
    return (
        f"The clean text has {_tokens(counts[0])} and the corrupted one {counts[1]}, but they are "
        f"compared token by token: {named}{more}; make them as many."
    )


def _uneven(clean: list[Word], corrupted: list[Word]) -> Iterator[str]:
    """In words, each run of words that was replaced by one of another number of tokens."""
    one, other = ([word for word, _ in each] for each in (clean, corrupted))
    for _, a, b, c, d in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        before, after = clean[a:b], corrupted[c:d]
        counts = [sum(count for _, count in each) for each in (before, after)]
        if counts[0] == counts[1]:
            continue
        if before and after:
            yield f"{_quoted(before)} is {_tokens(counts[0])} and {_quoted(after)} is {counts[1]}"
        else:
            which = "clean" if before else "corrupted"
            yield f"{_quoted(before or after)} ({_tokens(sum(counts))}) is only in the {which} text"


def _words(text: str, tokens: Sequence[Token]) -> list[Word]:
    found = []
    for match in WORD.finditer(text):
        ends = (token.end for token in tokens if token.end > token.start)
        found.append((match[0], sum(match.start() < end <= match.end() for end in ends)))
    return found


def _quoted(words: Sequence[Word]) -> str:
    said = "".join(word for word, _ in words)
    return f"“{cut(readable(said.strip() or said).replace('␣', ' '), LONGEST_WORD)}”"


def _tokens(count: int) -> str:
    return f"{count:,} token" if count == 1 else f"{count:,} tokens"
