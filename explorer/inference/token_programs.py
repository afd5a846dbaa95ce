"""Predicates of tokens, and the grammar that combines them to a program of a head.

A program is a text such as `nearest key is punctuation and before query`. It gives each query
weights over the keys: `and` multiplies them, `or` takes the larger, `not` subtracts from 1,
`nearest` keeps the closest key that fits, and `else` says what holds where none does. A program is
parsed, and nothing of it runs as code. Shapes: q queries and k keys among t tokens.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import torch
from torch import Tensor

from explorer.inference.program_list import PROGRAMS
from explorer.text.checked_text import ForwardPassError
from explorer.text.token import Token
from explorer.text.visible_text import cut

FUNCTION_WORDS = frozenset(
    "a an the and or but nor if then than that this these those of to in on at by for with from as "
    "into about over under is are was were be been being am do does did has have had will would "
    "can could shall should may might must not no it its he she they we you i me him her them us "
    "my your his our their who whom which what when where how why there here so too very just "
    "le la les un une des et ou de du que qui ne pas il elle nous vous je est sont".split()
)
OPENING, CLOSING = (*"([{",), (*")]}",)
MOST_CHARACTERS, MOST_NESTED = 160, 12


class ProgramError(ForwardPassError):
    """A program or the lines that it is measured on cannot be used; the message is a sentence."""


@dataclass(frozen=True, eq=False)
class LineTokens:
    """The tokens of one text as programs read them; (t,) each, and `word` counts the words."""

    ids: Tensor
    characters: tuple[str, ...]
    word: Tensor
    words: tuple[str, ...]
    special: Tensor

    @classmethod
    def of(cls, tokens: Sequence[Token], text: str, pair: str = "") -> "LineTokens":
        """The tokens of a text or a pair; a word ends where letters and digits do."""
        cuts = [(pair if token.second else text)[token.start : token.end] for token in tokens]
        word = [0]
        for at, (left, right) in enumerate(pairwise(tokens), 1):
            both = not (left.special or right.special) and (cuts[at - 1] + cuts[at]) != ""
            inside = cuts[at - 1][-1:].isalnum() and cuts[at][:1].isalnum()
            touch = right.start < left.end or (right.start == left.end and inside)
            word.append(word[-1] + (not (both and touch and left.second == right.second)))
        words = [""] * (word[-1] + 1)
        for number, some in zip(word, cuts, strict=True):
            words[number] += some.strip().lower()
        special = torch.tensor([token.special for token in tokens], dtype=torch.bool)
        ids, places = torch.tensor([token.id for token in tokens]), torch.tensor(word)
        characters = tuple(some.strip(" ") for some in cuts)
        return cls(ids, characters, places, tuple(words[number] for number in word), special)

    @property
    def distance(self) -> Tensor:
        """How far each key is before each query, (t, t)."""
        at = torch.arange(len(self.characters))
        return at[:, None] - at

    def same(self, behind: int = 0) -> Tensor:
        """Whether the key is `behind` places after another occurrence of the query, (t, t)."""
        equal = (self.ids[:, None] == self.ids) & ~self.special & (self.distance != 0)
        equal = equal.roll(behind, -1)
        equal[:, :behind] = False
        return equal & (self.distance != 0)

    def brackets(self) -> Tensor:
        """Whether query and key open and close the same bracket, (t, t)."""
        pairs, opened = torch.zeros_like(self.distance).bool(), list[int]()
        for at, mark in enumerate(self.characters):
            if mark in OPENING:
                opened.append(at)
            elif mark in CLOSING and opened:
                left = opened.pop()
                if self.characters[left] == OPENING[CLOSING.index(mark)]:
                    pairs[left, at] = pairs[at, left] = True
        return pairs

    def kind(self, name: str) -> Tensor:
        """Whether each token is of this kind, (t,)."""
        match name:
            case "special":
                return self.special
            case "repeated":
                return self.same().tril(-1).any(-1)
            case "first" | "last":
                return torch.arange(len(self.ids)) == (0 if name == "first" else len(self.ids) - 1)
            case "start of word":
                return self.word != torch.cat([self.word[:1] - 1, self.word[:-1]])
            case "start of sentence":
                ends = self.kind("end of sentence")
                return torch.cat([ends.new_ones(1), (ends | self.special)[:-1]]) & ~ends
        some = self.words if name in ("content", "function") else self.characters
        return torch.tensor([*map(KINDS[name], some)]) & ~self.special


KINDS: dict[str, Callable[[str], bool]] = {
    "capital": lambda some: some[:1].isupper(),
    "punctuation": lambda some: bool(some.strip()) and not any(map(str.isalnum, some)),
    "comma": lambda some: some.endswith((",", ";", ":")),
    "end of sentence": lambda some: some.endswith((".", "!", "?", "\n")),
    "newline": lambda some: "\n" in some,
    "number": lambda some: any(map(str.isdigit, some)),
    "content": lambda word: word.isalpha() and word not in FUNCTION_WORDS,
    "function": FUNCTION_WORDS.__contains__,
    "opening": OPENING.__contains__,
}
ALL_KINDS = (*KINDS, "special", "repeated", "first", "last", "start of word", "start of sentence")
RELATIONS: dict[str, Callable[[LineTokens], Tensor]] = {
    "any": lambda line: torch.ones_like(line.distance),
    "self": lambda line: line.distance == 0,
    "before query": lambda line: line.distance > 0,
    "after query": lambda line: line.distance < 0,
    "same token": LineTokens.same,
    "after same token": lambda line: line.same(behind=1),
    "same word": lambda line: line.word[:, None] == line.word,
    "previous word": lambda line: line.word[:, None] == line.word + 1,
    "same sentence": lambda line: (of := line.kind("start of sentence").cumsum(0))[:, None] == of,
    "matching bracket": LineTokens.brackets,
}
SIZED: dict[str, Callable[[Tensor, int], Tensor]] = {
    "previous": lambda distance, n: distance == n,
    "next": lambda distance, n: distance == -n,
    "within": lambda distance, n: distance.abs() < n,
    "decay": lambda distance, n: (-distance.abs() / n).exp(),
    "sink": lambda distance, n: n * (torch.arange(len(distance)) == 0).expand_as(distance),
}
PREDICATES = (
    f"key is or query is {', '.join(ALL_KINDS)}; {', '.join(RELATIONS)}; "
    f"{', '.join(f'{name}(n)' for name in SIZED)}; joined by and, or, not, nearest, else and "
    "parentheses"
)
Mixture = tuple[tuple[str, float], ...]
"""Programs and their shares, the largest first: names of `PROGRAMS`, or texts of the grammar."""
Evaluate = Callable[[LineTokens, Tensor], Tensor]
WORD = re.compile(r"[a-z]+\(\s*[0-9]+\s*\)|[()]|[^\s()]+")
JOINING: tuple[dict[str, Callable[[Tensor, Tensor], Tensor]], ...] = (
    {"else": lambda one, other: torch.where(one.sum(-1, keepdim=True) > 0, one, other)},
    {"or": torch.maximum},
    {"and": torch.mul},
)
"""What joins two programs, the loosest first."""
RESERVED = ("else", "or", "and", "not", "nearest", "(", ")")


@lru_cache(maxsize=512)
def parsed(program: str) -> Evaluate:
    """The function of a program: a line and the mask (q, k) to weights (q, k) of any sum.

    ProgramError says why it does not parse.
    """
    words = WORD.findall(program.lower())
    if len(program) > MOST_CHARACTERS or sum(map(words.count, ("(", "not"))) > MOST_NESTED:
        raise ProgramError(
            f"A program has at most {MOST_CHARACTERS} characters and {MOST_NESTED} of “(” and "
            "“not”: shorten it."
        )
    parser = _Parser(program, words)
    evaluate = parser.joined()
    if parser.words:
        raise parser.error(f"“{cut(parser.words[0], 20)}” is not expected there")
    return evaluate


class _Parser:
    """Takes words from the front; `joined` is the rule to begin with."""

    def __init__(self, program: str, words: list[str]) -> None:
        self._program, self.words = program, words

    def error(self, why: str) -> ProgramError:
        name = cut(self._program, 60)
        return ProgramError(f"The program “{name}” cannot be read: {why}. Use {PREDICATES}.")

    def _next_is(self, *some: str) -> bool:
        return bool(self.words) and self.words[0] in some

    def joined(self, level: int = 0) -> Evaluate:
        """Programs joined at this level of `JOINING`, or more tightly."""
        if level == len(JOINING):
            return self._one()
        if level == 1 and self._next_is("nearest"):
            self.words.pop(0)
            of = self.joined(level)
            return lambda line, visible: _nearest(of(line, visible) * visible, line.distance)
        left = self.joined(level + 1)
        while self._next_is(*JOINING[level]):
            how = JOINING[level][self.words.pop(0)]
            left = _both(how, left, self.joined(level + 1))
        return left

    def _one(self) -> Evaluate:
        if self._next_is("not"):
            self.words.pop(0)
            other = self._one()
            return lambda line, visible: 1 - other(line, visible)
        if self._next_is("("):
            self.words.pop(0)
            inner = self.joined()
            if not self._next_is(")"):
                raise self.error("a parenthesis is not closed")
            self.words.pop(0)
            return inner
        phrase = []
        while self.words and not self._next_is(*RESERVED):
            phrase.append(self.words.pop(0))
        return self._predicate(" ".join(phrase))

    def _predicate(self, phrase: str) -> Evaluate:
        side, _, kind = phrase.partition(" is ")
        if (relation := RELATIONS.get(phrase.removeprefix("key "))) is not None:
            return lambda line, visible: relation(line).float()
        if side in ("key", "query") and kind in ALL_KINDS:
            turn = side == "query"
            return lambda line, visible: _square(line.kind(kind).float(), turn)
        sized = re.fullmatch(r"([a-z]+)\(\s*([0-9]{1,4})\s*\)", phrase)
        if sized and sized[1] in SIZED and (n := int(sized[2])):
            of = SIZED[sized[1]]
            return lambda line, visible: of(line.distance, n).float()
        raise self.error(f"“{cut(phrase, 40)}” is no predicate" if phrase else "a part is missing")


def _square(of: Tensor, turn: bool) -> Tensor:
    square = of.expand(len(of), len(of))
    return square.mT if turn else square


def _both(how: Callable[[Tensor, Tensor], Tensor], left: Evaluate, right: Evaluate) -> Evaluate:
    return lambda line, visible: how(left(line, visible) * visible, right(line, visible) * visible)


def _nearest(weights: Tensor, distance: Tensor) -> Tensor:
    """1 at the closest key of each query that has weight, the earlier of two, else 0."""
    far = (distance.abs() * 2 + (distance < 0)).float().masked_fill(weights <= 0, torch.inf)
    best, at = far.min(-1, keepdim=True)
    return ((torch.arange(len(far)) == at) & best.isfinite()).float()


def program_map(program: str, line: LineTokens, visible: Tensor) -> Tensor:
    """The weights of a program, (q, k): every row sums to 1 over the keys that are `visible`.

    Where no key fits, the first visible key has all the weight, as heads that find nothing rest
    there (Xiao et al. 2023). A row without a visible key is zero.
    """
    weights = parsed(program)(line, visible) * visible
    total = weights.sum(-1, keepdim=True)
    first = visible & (visible.cumsum(-1) == 1)
    return torch.where(total > 0, weights / total.clamp(min=1e-30), first.float())


def mixture_map(mixture: Mixture, line: LineTokens, visible: Tensor) -> Tensor:
    """The sum of the maps of programs times their shares, (q, k)."""
    maps = [share * program_map(PROGRAMS.get(name, name), line, visible) for name, share in mixture]
    return torch.stack(maps).sum(0)
