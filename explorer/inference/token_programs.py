"""Predicates of tokens, and the grammar that combines them to a program of a head.

A program is a text such as `nearest key is punctuation and before query`. It gives each query
weights over the keys: `and` multiplies them, `or` takes the larger, `not` subtracts from 1,
`nearest` keeps the closest key that fits, and `else` says what holds where none does. A program is
parsed, and nothing of it runs as code. Shapes: q queries and k keys among t tokens.
"""

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import groupby

import torch
from torch import Tensor
from torch.nn.functional import pad

from explorer.text.checked_text import ForwardPassError
from explorer.text.token import Token
from explorer.text.visible_text import cut
from models.interventions import check_index, fit

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
        cuts = [of.text or (pair if of.second else text)[of.start : of.end] for of in tokens]
        word, words = list[int](), list[str]()
        for at, token in enumerate(tokens):
            left = tokens[at - 1]
            inside = cuts[at - 1][-1:].isalnum() and cuts[at][:1].isalnum()
            touch = token.start < left.end or (token.start == left.end and inside)
            goes_on = at and touch and not left.special and left.second == token.second
            words += [] if goes_on and not token.special else [""]
            words[-1] += cuts[at].strip().lower()
            word.append(len(words) - 1)
        ids, special = torch.tensor([[token.id, token.special] for token in tokens]).unbind(-1)
        characters, of_tokens = (cut.strip(" ") for cut in cuts), (words[at] for at in word)
        return cls(ids, tuple(characters), torch.tensor(word), tuple(of_tokens), special.bool())

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

    def sentence_starts(self) -> Tensor:
        """Whether each token is the first of a sentence, (t,)."""
        ends = self.kind("end of sentence")
        return pad((ends | self.special)[:-1], (1, 0), value=True) & ~ends

    def kind(self, name: str) -> Tensor:
        """Whether each token is of this kind, (t,)."""
        if name in PLACES:
            return PLACES[name](self)
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
PLACES: dict[str, Callable[[LineTokens], Tensor]] = {
    "special": lambda line: line.special,
    "repeated": lambda line: line.same().tril(-1).any(-1),
    "first": lambda line: torch.arange(len(line.ids)) == 0,
    "last": lambda line: torch.arange(len(line.ids)) == len(line.ids) - 1,
    "start of word": lambda line: line.word.diff(prepend=line.word[:1] - 1) > 0,
    "start of sentence": LineTokens.sentence_starts,
}
ALL_KINDS = (*KINDS, *PLACES)
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
SIZES = [f"{name}(n)" for name in SIZED]
PREDICATES = (
    f"key is or query is {', '.join(ALL_KINDS)}; {', '.join((*RELATIONS, *SIZES))}; joined by and, "
    "or, not, nearest, else and parentheses"
)
_LIST = """
self | previous(1) | previous(2) | previous(3) | next(1) | next(2) | decay(1) | decay(2) | decay(5)
decay(10) | decay(20) | within(4) | this word: same word | previous word | matching bracket
first: key is first | last: key is last | uniform: any
decay(2), not self: decay(2) and not self
uniform or sink(20): any or sink(20) | uniform or sink(60): any or sink(60)
decay(5) or sink(5) | decay(20) or sink(20)
same token, last: nearest same token and before query
same token, all: same token or self
token after the last same token: nearest after same token and before query
token after the last same token, else uniform: nearest after same token and before query else any
token after any same token: after same token and before query
token after any same token, else uniform: after same token and before query else any
token after any same token or sink(5): (after same token and before query) or sink(5)
last punctuation: nearest key is punctuation and not after query
last end of sentence: nearest key is end of sentence and not after query
last newline: nearest key is newline and not after query
start of the word: nearest key is start of word and not after query
start of the sentence: nearest key is start of sentence and not after query
starts of recent words or sink(5): (key is start of word and decay(10)) or sink(5)
this sentence: same sentence | this sentence or sink(20): same sentence or sink(20)
content words: key is content | last content word: nearest key is content and before query
recent content words: key is content and decay(5) | function words: key is function
last function word: nearest key is function and before query
capitals: key is capital | last capital: nearest key is capital and before query
numbers: key is number | last open bracket: nearest key is opening and before query
punctuation: key is punctuation | special tokens: key is special | repeated tokens: key is repeated
"""
_PAIRS = [one.partition(": ") for one in _LIST.strip().replace("\n", " | ").split(" | ")]
PROGRAMS = {name: text or name for name, _, text in _PAIRS}
WHOLE_PROGRAMS = " · ".join(name for name, text in PROGRAMS.items() if name != text)
NAMES = {
    "previous(1)": "previous-token head",
    "same token": "duplicate-token head",
    "token after": "induction head",
}
"""What a head is called whose strongest program begins so. Other programs give it no name.

Source: In-context Learning and Induction Heads (Olsson et al. 2022); Interpretability in the Wild
(Wang et al. 2022), section 3.
"""
Mixture = tuple[tuple[str, float], ...]
"""Programs and their shares, the largest first: names of `PROGRAMS`, or texts of the grammar."""
Evaluate = Callable[[LineTokens, Tensor], Tensor]
WORD = re.compile(r"[a-z]+\(\s*[0-9]+\s*\)|[()]|[^\s()]+")
SIGNS = {"else": "or", "nearest": "not", "or": "|", "and": "&", "not": "~", "(": "(", ")": ")"}
"""Operators of Python that bind in the same order: it parses a program, but never runs it."""


@lru_cache(maxsize=512)
def parsed(program: str) -> Evaluate:
    """The function of a program: a line and the mask (q, k) to weights (q, k) of any sum.

    ProgramError says why it does not parse.
    """
    words = WORD.findall(PROGRAMS.get(program, program).lower())
    expression, predicates = list[str](), dict[str, Evaluate]()
    try:
        if len(program) > MOST_CHARACTERS or sum(map(words.count, ("(", "not"))) > MOST_NESTED:
            limits = f"{MOST_CHARACTERS} characters or {MOST_NESTED} of “(” and “not”"
            raise SyntaxError(f"it has more than {limits}")
        for is_sign, some in groupby(words, SIGNS.__contains__):
            if is_sign:
                expression += map(SIGNS.__getitem__, some)
            else:
                expression.append(f"p{len(predicates)}")
                predicates[expression[-1]] = _predicate(" ".join(some))
        return _evaluate(ast.parse(" ".join(expression), mode="eval").body, predicates)
    except SyntaxError as error:
        why = error.msg if "“" in error.msg else "a part or a parenthesis is missing"
        raise ProgramError(f"The program “{cut(program, 60)}” cannot be read: {why}.") from None


def _predicate(phrase: str) -> Evaluate:
    side, _, kind = phrase.partition(" is ")
    if (relation := RELATIONS.get(phrase.removeprefix("key "))) is not None:
        return lambda line, visible: relation(line).float()
    if side in ("key", "query") and kind in ALL_KINDS:
        turned = (0, 1) if side == "key" else (1, 0)
        return lambda line, visible: line.kind(kind).float().expand(visible.shape).permute(turned)
    sized = re.fullmatch(r"([a-z]+)\(\s*([0-9]{1,4})\s*\)", phrase)
    if sized and sized[1] in SIZED and (n := int(sized[2])):
        of = SIZED[sized[1]]
        return lambda line, visible: of(line.distance, n).float()
    if side in ("key", "query") and kind:
        those = f"after “{side} is” comes one of {', '.join(ALL_KINDS)}"
        raise SyntaxError(f"{those}; “{cut(kind, 40)}” is none of them")
    others = f"key is, query is, {', '.join((*RELATIONS, *SIZES))}"
    raise SyntaxError(f"“{cut(phrase, 40)}” is no predicate: use {others}")


def _evaluate(node: ast.expr, predicates: dict[str, Evaluate]) -> Evaluate:
    """The function of a node; SyntaxError for one that is no operator of `SIGNS`."""
    match node:
        case ast.Name(id=name):
            return predicates[name]
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            of = _evaluate(operand, predicates)
            return lambda line, visible: (1 - of(line, visible)).clamp(min=0)
        case ast.UnaryOp(operand=operand):
            of = _evaluate(operand, predicates)
            return lambda line, visible: _nearest(of(line, visible) * visible, line.distance)
        case ast.BinOp(left=left, right=right):
            how = torch.mul if isinstance(node.op, ast.BitAnd) else torch.maximum
            one, other = _evaluate(left, predicates), _evaluate(right, predicates)
            return lambda line, visible: how(one(line, visible), other(line, visible))
        case ast.BoolOp(values=values):
            some = [_evaluate(value, predicates) for value in values]
            return lambda line, visible: reduce(_else, [of(line, visible) * visible for of in some])
    raise SyntaxError("")


def _else(one: Tensor, other: Tensor) -> Tensor:
    return torch.where(one.sum(-1, keepdim=True) > 0, one, other)


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
    return _rows(parsed(program)(line, visible), visible)


def _rows(weights: Tensor, visible: Tensor) -> Tensor:
    weights = weights * visible
    total = weights.sum(-1, keepdim=True)
    first = visible & (visible.cumsum(-1) == 1)
    return torch.where(total > 0, weights / torch.where(total > 0, total, 1), first.to(weights))


@dataclass(frozen=True, eq=False)
class ReplaceMap:
    """The weights of a head become a map (…, q, k), on the keys that are visible in this pass.

    A row keeps its sum, which is less than 1 where the model scales its rows.
    """

    site: str
    map: Tensor
    head: int

    def __call__(self, value: Tensor) -> Tensor:
        check_index("head", self.head, value.shape[1], self.site)
        own, visible = value[:, self.head], (value > 0).any(1)  # a masked key has none in any head
        changed = value.clone()
        changed[:, self.head] = _rows(fit(self.map, own, self.site), visible)
        changed[:, self.head] *= own.sum(-1, keepdim=True)
        return changed


def mixture_map(mixture: Mixture, line: LineTokens, visible: Tensor) -> Tensor:
    """The sum of the maps of programs times their shares, (q, k)."""
    return torch.stack([share * program_map(of, line, visible) for of, share in mixture]).sum(0)


def mixture_words(mixture: Mixture, quote: str = "") -> str:
    rounded = [(round(share, 3), cut(name, 60)) for name, share in mixture]  # as an edit has them
    return " + ".join(f"{share:.0%} {quote}{name}{quote}" for share, name in rounded)
