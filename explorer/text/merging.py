"""Byte-pair merges as the library applies them: lowest rank first, leftmost first."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Unit:
    """A token in the making and the characters of the text it came from."""

    token: str
    start: int
    end: int


@dataclass(frozen=True)
class Merge:
    """One merge applied wherever it was next, and the words after it.

    `made` holds (word, place) of every unit that it made.
    """

    rank: int
    pair: tuple[str, str]
    words: list[list[Unit]]
    made: frozenset[tuple[int, int]]


Ranks = dict[tuple[str, str], int]


def merges(words: list[list[Unit]], ranks: Ranks) -> Iterator[Merge]:
    """Every merge until none applies. Words never merge with each other."""
    words = [list(word) for word in words]
    next_in_line = [_lowest(word, ranks) for word in words]
    made: set[tuple[int, int]] = set()
    while waiting := [(best, index) for index, best in enumerate(next_in_line) if best]:
        (rank, place), index = min(waiting, key=lambda item: (item[0][0], item[1]))
        word = words[index]
        left, right = word[place], word[place + 1]
        word[place : place + 2] = [Unit(left.token + right.token, left.start, right.end)]
        made = {(w, p - (w == index and p > place)) for w, p in made} | {(index, place)}
        next_in_line[index] = _lowest(word, ranks)
        if min((best[0] for best in next_in_line if best), default=None) != rank:
            yield Merge(rank, (left.token, right.token), [list(w) for w in words], frozenset(made))
            made = set()


def _lowest(word: list[Unit], ranks: Ranks) -> tuple[int, int] | None:
    """The lowest rank among neighbouring pairs and where its leftmost pair begins."""
    found = [
        (ranks[pair], place)
        for place, (left, right) in enumerate(pairwise(word))
        if (pair := (left.token, right.token)) in ranks
    ]
    return min(found, default=None)
