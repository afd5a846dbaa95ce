"""The corrupted text by default: the clean one with a word replaced so that the answer changes.

The first of a few candidates for which the model prefers another option than for the clean text.
"""

import re
from collections.abc import Iterator
from itertools import islice

from explorer.analysis.circuit_metrics import metrics_of
from explorer.analysis.circuits.text_pairs import PairError, TextPair, token_pair
from explorer.catalog.opened_model import OpenModel
from explorer.inference.results_cache import cached
from explorer.text import TextError, Token

TRIED = 8
"""Candidates, one pass each; the page has the pass of the clean text already."""
LONGEST_CORRUPTED = 400
"""Characters of the longest clean text that gets one."""

WORD = re.compile(r"\w+")
OPPOSITES = (
    *(("not", "really"), ("never", "always"), ("good", "bad"), ("wonderful", "terrible")),
    *(("delicious", "terrible"), ("great", "poor"), ("keys", "key"), ("not", "now")),
    *(("pleasant", "awful"), ("boring", "pleasant"), ("no", "much")),
    *(("France", "Italy"), ("She", "He"), ("she", "he"), ("is", "was")),
)
"""Each word of a pair is replaced by the other."""


def default_corruption(opened: OpenModel, clean: str) -> str:
    """The corrupted text, empty where no candidate makes a pair with the clean one; cached."""
    key = ("default corruption", clean)
    return cached(opened, key, lambda: _find_corruption(opened, clean))


def _find_corruption(opened: OpenModel, clean: str) -> str:
    usable = ""
    if not clean.strip() or len(clean) > LONGEST_CORRUPTED:
        return usable
    try:
        tokens = opened.tokenizer.encode(clean)
    except TextError:
        return usable
    metric = metrics_of(opened.config)[0]
    candidates = dict.fromkeys(_candidates(clean, tokens))
    for corrupted in islice(candidates, TRIED):
        try:
            pair = token_pair(opened, TextPair(clean, corrupted), metric)
        except PairError:
            continue
        if len(pair.clean) != len(pair.corrupted):
            continue
        usable = usable or corrupted
        if pair.corrupted_value < 0:  # its likeliest option is another one
            return corrupted
    return usable


def _candidates(clean: str, tokens: tuple[Token, ...]) -> Iterator[str]:
    """The clean text with a change: a repeated name replaced by an earlier one, a word by its
    opposite, the copies of the last token exchanged with others, any word by another of the text.
    """
    words = list(WORD.finditer(clean))
    names = [word for word in words if word[0][0].isupper()]
    for name in reversed(names):
        earlier = [word for word in names if word.start() < name.start()]
        if any(word[0] == name[0] for word in earlier):
            for replacement in earlier[1:] + earlier[:1]:
                yield from _replaced(clean, name, replacement[0])
    for pair in OPPOSITES:
        for text, opposite in (pair, pair[::-1]):
            for word in words:
                if word[0] == text:
                    yield from _replaced(clean, word, opposite)
    yield from _exchanged(clean, tokens)
    for word in reversed(words):
        for replacement in words:
            if word[0][0].isupper() == replacement[0][0].isupper():
                yield from _replaced(clean, word, replacement[0])


def _replaced(clean: str, word: re.Match[str], replacement: str) -> Iterator[str]:
    if word[0].lower() != replacement.lower():
        yield clean[: word.start()] + replacement + clean[word.end() :]


def _exchanged(clean: str, tokens: tuple[Token, ...]) -> Iterator[str]:
    """A text whose last token occurs before, with its earlier copies and another token exchanged.

    Another token then follows the copies of the last token.
    """
    tokens = tuple(token for token in tokens if token.end > token.start)
    if not tokens or not any(token.id == tokens[-1].id for token in tokens[:-1]):
        return
    pieces = [clean[token.start : token.end] for token in tokens]
    *before, last = pieces
    for piece in dict.fromkeys(reversed(before[:-1])):
        if piece != last and "".join(pieces) == clean:
            exchange = {last: piece, piece: last}
            yield "".join([*(exchange.get(text, text) for text in before), last])
