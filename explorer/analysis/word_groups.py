"""The tokens of each word, and the sentence of a pair that each token belongs to."""

import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import torch
from torch import Tensor

from explorer.text.token import Token
from explorer.text.visible_text import SPACE, readable

PIECE = "##"
WITHOUT_SPACES = ("CJK", "HIRAGANA", "KATAKANA", "IDEOGRAPHIC", "THAI", "LAO", "KHMER", "MYANMAR")
"""Scripts that put no spaces between words: their tokens are never merged."""

Group = tuple[int, ...]


def group_words(tokens: Sequence[Token], text: str, pair: str = "") -> tuple[Group, ...]:
    """The places of the tokens of each word, in order; a special token is a word of its own.

    A word ends at a space and at punctuation: by the characters of typed tokens, and by the
    labels of generated ones (`␣the`, `##ing`).
    """
    spaced = any(token.label.startswith(SPACE) for token in tokens)
    groups: list[list[int]] = []
    for at, token in enumerate(tokens):
        if at and _same_word(tokens[at - 1], token, text, pair, spaced):
            groups[-1].append(at)
        else:
            groups.append([at])
    return tuple(map(tuple, groups))


def merged_tokens(
    tokens: Sequence[Token], groups: Sequence[Group], text: str, pair: str = ""
) -> tuple[Token, ...]:
    """One token for every word, labelled by its characters; a word of one token is that token."""
    return tuple(_joined([tokens[at] for at in group], text, pair) for group in groups)


def sum_groups(values: Tensor, groups: Sequence[Group], dim: int) -> Tensor:
    """Values summed by group along one dimension, without those that are in no group."""
    shape = list(values.shape)
    shape[dim] = len(groups)
    pairs = [(at, number) for number, group in enumerate(groups) for at in group]
    places, owners = torch.tensor(pairs, dtype=torch.int64, device=values.device).view(-1, 2).mT
    return values.new_zeros(shape).index_add_(dim, owners, values.index_select(dim, places))


def sentences_of(tokens: Sequence[Token]) -> tuple[int, ...]:
    """0 for every token of the first sentence, 1 for the second.

    A special token belongs to the sentence before it; at the start of the text, to the first.
    """
    sentences, current = [], 0
    for token in tokens:
        if not token.special:
            current = int(token.second)
        sentences.append(current)
    return tuple(sentences)


def _same_word(left: Token, right: Token, text: str, pair: str, spaced: bool) -> bool:
    if left.special or right.special or left.second != right.second:
        return False
    if left.end == left.start or right.end == right.start:
        return _same_by_label(left.label, right.label, spaced)
    if right.start < left.end:  # parts of one character
        return True
    typed = pair if right.second else text
    if right.start > left.end or right.end > len(typed):
        return False
    return _inside(typed[left.end - 1]) and _inside(typed[right.start])


def _same_by_label(left: str, right: str, spaced: bool) -> bool:
    if right.startswith(PIECE):
        return True
    if not spaced or not left or not right or right.startswith(SPACE):
        return False
    return (left == SPACE or _inside(left[-1])) and _inside(right[0])


@lru_cache(maxsize=4096)
def _inside(character: str) -> bool:
    """Whether a word may continue at this character."""
    if unicodedata.name(character, "").startswith(WITHOUT_SPACES):
        return False
    return character.isalnum() or unicodedata.category(character).startswith("M")


def _joined(tokens: Sequence[Token], text: str, pair: str) -> Token:
    first = tokens[0]
    if len(tokens) == 1:
        return first
    start, end = min(token.start for token in tokens), max(token.end for token in tokens)
    label = (pair if first.second else text)[start:end].strip()
    if not label:
        label = "".join(token.label.removeprefix(PIECE) for token in tokens).strip(SPACE)
    space = SPACE if first.label.startswith(SPACE) else ""
    return replace(first, label=space + readable(label), start=start, end=end)
