"""Regular expressions of a stranger, matched against names of modules in bounded time.

Python's own matcher tries one way after another, which a hostile pattern makes endless. Whether a
whole name matches does not depend on their order, so here every part of a pattern gives all places
where it can end, each computed once: time grows with the pattern's length times the square of the
name's. Python's parser reads the pattern, which so means the same as in the peft library.
"""

import re
from collections.abc import Iterator
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

LONGEST_PATTERN, MOST_STEPS = 4_000, 300_000
LETTERS = (op.LITERAL, op.NOT_LITERAL, op.ANY, op.IN)


def _is_word(letter: str) -> bool:
    return letter.isalnum() or letter == "_"


CATEGORIES = {
    op.CATEGORY_DIGIT: str.isdecimal,
    op.CATEGORY_SPACE: str.isspace,
    op.CATEGORY_WORD: _is_word,
    op.CATEGORY_NOT_DIGIT: lambda letter: not letter.isdecimal(),
    op.CATEGORY_NOT_SPACE: lambda letter: not letter.isspace(),
    op.CATEGORY_NOT_WORD: lambda letter: not _is_word(letter),
}


class Patterns:
    """Matches patterns against whole names, as `re.fullmatch` does.

    ValueError for a pattern that is none, that is too long or takes too many steps, or that uses
    what is not supported: flags, references to groups, looking back, repetition that gives
    nothing back. The steps of all patterns of one object are counted together.
    """

    def __init__(self, steps: int = MOST_STEPS) -> None:
        self._left = steps
        self._parsed: dict[str, Any] = {}
        self._name, self._ends = "", dict[tuple[int, int], frozenset[int]]()

    def matches(self, pattern: str, name: str) -> bool:
        self._name, self._ends = name, {}
        try:
            if len(pattern) <= LONGEST_PATTERN:
                parts = self._parsed.setdefault(pattern, None) or _parser.parse(pattern)
                self._parsed[pattern] = parts
                if parts.state.flags == re.UNICODE:
                    return len(name) in self._after(parts, frozenset({0}))
        except (re.error, OverflowError, RecursionError):
            pass
        raise ValueError

    def _after(self, parts: Any, places: frozenset[int]) -> frozenset[int]:
        """Where the parts can end that begin, one after another, at one of these places."""
        for part in parts:
            places = frozenset().union(*(self._from(part, place) for place in places))
        return places

    def _from(self, part: Any, place: int) -> frozenset[int]:
        self._left -= 1
        if self._left < 0:
            raise re.error("takes too many steps")
        key = (id(part), place)
        if key not in self._ends:
            kind, value = part
            self._ends[key] = frozenset(self._ends_of(kind, value, place))
        return self._ends[key]

    def _ends_of(self, kind: Any, value: Any, place: int) -> Iterator[int]:
        here = frozenset({place})
        if kind in LETTERS:
            letter = self._name[place : place + 1]
            if letter and _allows(kind, value, letter):
                yield place + 1
        elif kind is op.BRANCH:
            for choice in value[1]:
                yield from self._after(choice, here)
        elif kind is op.SUBPATTERN and not (value[1] or value[2]):
            yield from self._after(value[3], here)
        elif kind in (op.MAX_REPEAT, op.MIN_REPEAT):
            least, most, parts = value
            yield from self._repeated(least, most, parts, here)
        elif kind in (op.ASSERT, op.ASSERT_NOT) and value[0] == 1:
            if bool(self._after(value[1], here)) is (kind is op.ASSERT):
                yield place
        elif kind is op.AT:
            if self._is_at(value, place):
                yield place
        else:
            raise re.error("not supported")

    def _repeated(self, least: int, most: int, parts: Any, places: frozenset[int]) -> set[int]:
        """Once there were more rounds than letters, another round reaches no new place."""
        longest = len(self._name) + 1
        for _ in range(min(least, longest)):
            places = self._after(parts, places)
        ends = set(places)
        for _ in range(min(most - least, longest)):
            places = self._after(parts, places) - ends
            ends |= places
        return ends

    def _is_at(self, where: Any, place: int) -> bool:
        if where in (op.AT_BEGINNING, op.AT_BEGINNING_STRING):
            return place == 0
        if where in (op.AT_END, op.AT_END_STRING):
            return place == len(self._name)
        sides = self._name[:place][-1:], self._name[place : place + 1]
        return (_is_word(sides[0]) != _is_word(sides[1])) is (where is op.AT_BOUNDARY)


def _allows(kind: Any, value: Any, letter: str) -> bool:
    """Whether a part that stands for one letter allows this one."""
    if kind is op.IN:
        is_negated = value[0][0] is op.NEGATE
        return any(_allows(inner, of, letter) for inner, of in value[is_negated:]) is not is_negated
    if kind is op.RANGE:
        return bool(value[0] <= ord(letter) <= value[1])
    if kind is op.CATEGORY:
        return CATEGORIES[value](letter)
    return kind is op.ANY or (ord(letter) == value) is (kind is op.LITERAL)
