"""Two tokenizations of one text aligned by its characters: which of their tokens belong together.

Tokens are joined into the smallest groups that begin and end at the border of a token in both.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from explorer.analysis.word_groups import Group
from explorer.text.token import Token
from explorer.text.visible_text import readable


class NotAlignedError(ValueError):
    """Two lists of tokens have no common groups; the message says why and what to do."""


@dataclass(frozen=True)
class AlignedTokens:
    """The groups of tokens that two lists of tokens have in common, in the order of the text.

    `first` and `second` hold for each group the places of its tokens in either list, and `labels`
    what stands for it. `left_out` are the places in either list that no group has.
    `by_characters` where a group stands for the same characters in both, and not only for the
    same place in two lists of one length.
    """

    labels: tuple[Token, ...]
    first: tuple[Group, ...]
    second: tuple[Group, ...]
    left_out: tuple[Group, Group] = ((), ())
    by_characters: bool = True

    @property
    def is_pooled(self) -> bool:
        """Whether a group has several tokens, or a token no group."""
        return any(self.left_out) or any(len(each) > 1 for each in (*self.first, *self.second))


def align_tokens(
    first: Sequence[Token], second: Sequence[Token], text: str, pair: str = ""
) -> AlignedTokens:
    """The groups of two tokenizations of one text, or of one pair of texts.

    A group begins and ends where a token begins or ends in both, and has a token of each;
    characters without a token in one of them, such as a space, go with those after them. Tokens
    of equal labels inside a group (the bytes of an emoji) are groups of their own. Special tokens
    are aligned by their role: before, between and after the texts; a role that only one of them
    has is left out. Every token must be of the text or special: see `Token`. Cost grows with
    characters and tokens.
    """
    roles, spans = zip(*map(_sorted, (first, second)), strict=True)
    found: list[tuple[Group, Group]] = []
    for place, typed in enumerate((text, pair)):
        found += _both(roles, place)
        found += _by_characters([each[place] for each in spans], len(typed))
    found += _both(roles, 2)
    groups = [pair_of for each in found for pair_of in _one_to_one(first, second, *each)]
    left_out = [
        tuple(sorted({*range(len(tokens))} - {at for group in groups for at in group[side]}))
        for side, tokens in enumerate((first, second))
    ]
    return AlignedTokens(
        labels=tuple(_label(first, second, *each, text, pair) for each in groups),
        first=tuple(one for one, _ in groups),
        second=tuple(other for _, other in groups),
        left_out=(left_out[0], left_out[1]),
    )


def align_places(first: Sequence[Token], second: Sequence[Token]) -> AlignedTokens:
    """Token by token of two lists of one length, labelled by the second. ValueError else."""
    if len(first) != len(second):
        raise ValueError(f"{len(first):,} tokens have no places in common with {len(second):,}")
    places = tuple((at,) for at in range(len(second)))
    return AlignedTokens(tuple(second), places, places, by_characters=False)


Spans = list[tuple[int, int, int]]
"""The place of each token of a text, and the characters it stands for."""


def _sorted(tokens: Sequence[Token]) -> tuple[Mapping[int, Group], tuple[Spans, Spans]]:
    """Special tokens by how many texts end before them, and the other tokens of either text.

    A token without characters that is not special has those of the token before it.
    """
    special = [token.special and token.start == token.end for token in tokens]
    last = {token.second: at for at, token in enumerate(tokens) if not special[at]}
    roles: dict[int, Group] = defaultdict(tuple)
    spans: tuple[Spans, Spans] = [], []
    for at, token in enumerate(tokens):
        if special[at]:
            roles[sum(at > end for end in last.values())] += (at,)
            continue
        mine, span = spans[token.second], (token.start, token.end)
        if token.start == token.end and mine:
            span = mine[-1][1:]
        mine.append((at, *span))
    if len(last) == 1:  # what closes a single text stands where what closes a pair does
        roles[2] = roles.pop(1, ())
    return roles, spans


def _both(roles: Sequence[Mapping[int, Group]], role: int) -> list[tuple[Group, Group]]:
    """The special tokens of a role as a group, where both have some."""
    one, other = (each.get(role, ()) for each in roles)
    return [(one, other)] if one and other else []


def _by_characters(both: Sequence[Spans], length: int) -> list[tuple[Group, Group]]:
    """The groups of two tokenizations of so many characters."""
    inside = [0] * (length + 2)
    for _, start, end in (*both[0], *both[1]):
        if end > start + 1:
            inside[start + 1] += 1
            inside[end] -= 1
    borders = [at for at, depth in enumerate(accumulate(inside[: length + 1])) if not depth]
    between: dict[int, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for side, spans in enumerate(both):
        for at, start, _ in spans:
            between[bisect_right(borders, start)][side].append(at)
    groups: list[tuple[Group, Group]] = []
    one, other = list[int](), list[int]()
    for _, (more, others) in sorted(between.items()):
        one, other = [*one, *more], [*other, *others]
        if one and other:
            groups.append((tuple(one), tuple(other)))
            one, other = [], []
    if groups:
        groups[-1] = (groups[-1][0] + tuple(one), groups[-1][1] + tuple(other))
    return groups


def _one_to_one(
    first: Sequence[Token], second: Sequence[Token], one: Group, other: Group
) -> list[tuple[Group, Group]]:
    """A group for each token where both have the same tokens."""
    if [first[at].label for at in one] != [second[at].label for at in other]:
        return [(one, other)]
    return [((a,), (b,)) for a, b in zip(one, other, strict=True)]


def _label(
    first: Sequence[Token],
    second: Sequence[Token],
    one: Group,
    other: Group,
    text: str,
    pair: str,
) -> Token:
    """The token that both have; else the characters of a group, or the special tokens of both."""
    tokens, token = [first[at] for at in one], second[other[0]]
    tokens += [second[at] for at in other]
    if len(tokens) == 2 and tokens[0].label == token.label:
        return token
    if token.special and token.start == token.end:
        sides = tokens[: len(one)], tokens[len(one) :]
        names = ("".join(each.label for each in side) for side in sides)
        return replace(token, label="/".join(dict.fromkeys(names)))
    spans = [(each.start, each.end) for each in tokens if each.start < each.end]
    start, end = min(start for start, _ in spans), max(end for _, end in spans)
    return replace(
        token, label=readable((pair if token.second else text)[start:end]), start=start, end=end
    )
