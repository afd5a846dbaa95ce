"""Two tokenizations of one text, aligned by its characters, and two attention maps over them.

Tokens are joined into the smallest groups that begin and end at the border of a token in both.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import accumulate, pairwise

import torch
from torch import Tensor

from explorer.analysis.head_similarity import js_divergence
from explorer.analysis.word_groups import Group, sum_groups
from explorer.text.token import Token
from explorer.text.visible_text import readable


class NotAlignedError(ValueError):
    """Two lists of tokens have no common groups; the message says why and what to do."""


@dataclass(frozen=True)
class AlignedTokens:
    """The groups of tokens that two lists of tokens have in common, in the order of the text.

    `first` and `second` hold for each group the places of its tokens in either list, and `labels`
    its label. `left_out` are the places in either list that no group has. `by_characters` is
    False where a group is only the same place in two lists of one length.
    """

    labels: tuple[Token, ...]
    first: tuple[Group, ...]
    second: tuple[Group, ...]
    left_out: tuple[Group, Group] = ((), ())
    by_characters: bool = True

    @property
    def is_pooled(self) -> bool:
        """Whether a group has several tokens, or a token has no group."""
        return any(self.left_out) or any(len(group) > 1 for group in (*self.first, *self.second))


def align_tokens(
    first: Sequence[Token], second: Sequence[Token], text: str, pair: str = ""
) -> AlignedTokens:
    """The groups of two tokenizations of one text, or of one pair of texts.

    A group begins and ends where a token begins or ends in both, and has a token of each;
    characters without a token in one of them, such as a space, go with those after them. Tokens
    of equal labels inside a group (the bytes of an emoji) are groups of their own. Special tokens
    are aligned by their role: before, between or after the texts; a role that only one of them
    has is left out. Every token must be of the text or special: see `Token`. Cost grows with
    characters and tokens.
    """
    roles, spans = zip(*map(_sorted, (first, second)), strict=True)
    matches: list[tuple[Group, Group]] = []
    for place, typed in enumerate((text, pair)):
        matches += _both(roles, place)
        matches += _by_characters([of_tokens[place] for of_tokens in spans], len(typed))
    matches += _both(roles, 2)
    groups: list[tuple[Group, Group]] = []
    for left, right in matches:
        if [first[at].label for at in left] == [second[at].label for at in right]:
            groups += (((a,), (b,)) for a, b in zip(left, right, strict=True))
        else:
            groups.append((left, right))
    left_out = [
        tuple(sorted({*range(len(tokens))} - {at for group in groups for at in group[side]}))
        for side, tokens in enumerate((first, second))
    ]
    return AlignedTokens(
        labels=tuple(_label(first, second, *group, text, pair) for group in groups),
        first=tuple(left for left, _ in groups),
        second=tuple(right for _, right in groups),
        left_out=(left_out[0], left_out[1]),
    )


def align_places(first: Sequence[Token], second: Sequence[Token]) -> AlignedTokens:
    """Token by token of two lists of one length, labelled by the second."""
    places = tuple((at,) for at in range(len(second)))
    return AlignedTokens(tuple(second), places, places, by_characters=False)


def align_texts(
    first: Sequence[Token], second: Sequence[Token], read_at: tuple[int, int]
) -> tuple[tuple[int, int], ...]:
    """The places of two different texts that are partners, in their order.

    Texts of one length are aligned place by place. Else the equal tokens at the beginning are
    partners, the places `read_at` of the two outputs, and before and after these the equal runs
    that difflib finds. Where a run is replaced by one of another length, its last tokens are
    partners of the last ones there, since they have read the whole run.
    """
    ids = [[token.id for token in tokens] for tokens in (first, second)]
    if len(first) == len(second):
        return tuple((at, at) for at in range(len(first)))
    alike = [a == b for a, b in zip(*ids, strict=False)]
    begin = min([*read_at, *(at for at, same in enumerate(alike) if not same), len(alike)])
    partners = [(at, at) for at in range(begin)]
    after = read_at[0] + 1, read_at[1] + 1
    for (a, c), (b, d) in pairwise([(begin, begin), read_at, after, (len(first), len(second))]):
        matcher = SequenceMatcher(None, ids[0][a:b], ids[1][c:d], autojunk=False)
        for _, i, j, k, m in matcher.get_opcodes():
            count = min(j - i, m - k)
            partners += zip(range(a + j - count, a + j), range(c + m - count, c + m), strict=True)
    return tuple(partners)


Spans = list[tuple[int, int, int]]
"""The place of each token of a text, and the start and end of its characters."""


def _sorted(tokens: Sequence[Token]) -> tuple[Mapping[int, Group], tuple[Spans, Spans]]:
    """Special tokens by the number of texts that end before them; the other tokens by text.

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
    if len(last) == 1:  # the special tokens after a single text count as those after a pair
        roles[2] = roles.pop(1, ())
    return roles, spans


def _both(roles: Sequence[Mapping[int, Group]], role: int) -> list[tuple[Group, Group]]:
    """The special tokens of a role as a group, where both have some."""
    left, right = (of_tokens.get(role, ()) for of_tokens in roles)
    return [(left, right)] if left and right else []


def _by_characters(both: Sequence[Spans], length: int) -> list[tuple[Group, Group]]:
    """The groups of two tokenizations of a text of `length` characters."""
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
    left, right = list[int](), list[int]()
    for _, (more_left, more_right) in sorted(between.items()):
        left, right = [*left, *more_left], [*right, *more_right]
        if left and right:
            groups.append((tuple(left), tuple(right)))
            left, right = [], []
    if groups:
        groups[-1] = (groups[-1][0] + tuple(left), groups[-1][1] + tuple(right))
    return groups


def _label(
    first: Sequence[Token],
    second: Sequence[Token],
    first_group: Group,
    second_group: Group,
    text: str,
    pair: str,
) -> Token:
    """The token that both have; else one for a group's characters or for both special tokens."""
    tokens, token = [first[at] for at in first_group], second[second_group[0]]
    tokens += [second[at] for at in second_group]
    if len(tokens) == 2 and tokens[0].label == token.label:
        return token
    if token.special and token.start == token.end:
        sides = tokens[: len(first_group)], tokens[len(first_group) :]
        names = ("".join(special.label for special in side) for side in sides)
        return replace(token, label="/".join(dict.fromkeys(names)))
    spans = [(part.start, part.end) for part in tokens if part.start < part.end]
    start, end = min(start for start, _ in spans), max(end for _, end in spans)
    return replace(
        token, label=readable((pair if token.second else text)[start:end]), start=start, end=end
    )


def map_difference(first: Tensor, second: Tensor) -> Tensor:
    """second − first, cell by cell, (queries, keys) of both."""
    return second - first


def pool_map(weights: Tensor, rows: Sequence[Group], columns: Sequence[Group]) -> Tensor:
    """Attention weights (queries, keys) between groups of tokens, (rows, columns).

    Each group has the places of its tokens. The weight on a group of keys is the sum over them,
    and the row of a group of queries the mean over them: a row sums to 1 if every key is in a
    group. A group without keys has weight 0; groups of one token change nothing. Cost: every
    weight is read once.
    """
    pooled = sum_groups(sum_groups(weights, columns, -1), rows, -2)
    return pooled / torch.tensor([len(group) for group in rows]).view(-1, 1)


def pool_mask(allowed: Tensor, rows: Sequence[Group], columns: Sequence[Group]) -> Tensor:
    """Whether a query of a group may attend to a key of a group, (rows, columns) of bool."""
    return pool_map(allowed.float(), rows, columns) > 0


def map_divergence(first: Tensor, second: Tensor, rows: Tensor) -> float:
    """The mean Jensen–Shannon divergence of the rows of two maps, in bits, from 0 to 1.

    It is over `rows`, (queries,) of bool; NaN if there are none.
    """
    if not rows.any():
        return float("nan")
    return float(js_divergence(first[rows].double(), second[rows].double()[None])[0])


def common_scale(*maps: Tensor) -> float:
    """The end of a common colour scale of all maps: their largest weight."""
    return float(torch.stack([weights.nan_to_num().amax() for weights in maps]).max()) or 1.0


def largest_change(difference: Tensor) -> float:
    """The largest change of a cell, up or down."""
    return float(difference.nan_to_num().abs().max()) if difference.numel() else 0.0
