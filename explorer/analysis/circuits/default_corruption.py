"""A corrupted text to begin with: the clean one with a word changed, so that the answer changes.

It is found by trying, whatever the model: the first of a few candidates after which another
option is likeliest than after the clean text.
"""

import re
from collections.abc import Iterator
from itertools import islice

from explorer.analysis.circuit_metrics import LOGIT_DIFFERENCE
from explorer.analysis.circuits.text_pairs import PairError, TextPair, token_pair
from explorer.catalog.opened_model import OpenModel
from explorer.inference.results_cache import kept
from explorer.text import TextError, Token

TRIED = 8
"""Candidates, one pass each; the pass of the clean text is the page's own."""
LONGEST_CORRUPTED = 400
"""Characters of a text for which one is looked for."""

WORD = re.compile(r"\w+")
OPPOSITES = (
    *(("not", "really"), ("never", "always"), ("good", "bad"), ("wonderful", "terrible")),
    *(("delicious", "terrible"), ("great", "poor"), ("keys", "key"), ("not", "now")),
    *(("pleasant", "awful"), ("boring", "pleasant"), ("no", "much")),
    *(("France", "Italy"), ("She", "He"), ("she", "he"), ("is", "was")),
)
"""Words with another one for each, tried both ways."""


def default_corruption(opened: OpenModel, clean: str) -> str:
    """The text, or an empty one where no candidate is a pair with the clean one; kept."""
    key = ("default corruption", clean)
    return kept(opened, key, lambda: _find_corruption(opened, clean))


def _find_corruption(opened: OpenModel, clean: str) -> str:
    usable = ""
    if not clean.strip() or len(clean) > LONGEST_CORRUPTED:
        return usable
    try:
        tokens = opened.tokenizer.encode(clean)
    except TextError:
        return usable
    candidates = dict.fromkeys(_candidates(clean, tokens))
    for corrupted in islice(candidates, TRIED):
        try:
            pair = token_pair(opened, TextPair(clean, corrupted), LOGIT_DIFFERENCE)
        except PairError:
            continue
        usable = usable or corrupted
        if pair.corrupted_value < 0:  # the likeliest after it is another
            return corrupted
    return usable


def _candidates(clean: str, tokens: tuple[Token, ...]) -> Iterator[str]:
    """Where a name comes again, another one; a word's opposite; in a text that repeats itself, what
    the last token is a copy of, moved away; any word for another."""
    words = list(WORD.finditer(clean))
    names = [each for each in words if each[0][0].isupper()]
    for again in reversed(names):
        earlier = [each for each in names if each.start() < again.start()]
        if any(each[0] == again[0] for each in earlier):
            for other in earlier[1:] + earlier[:1]:
                yield from _with(clean, again, other[0])
    for pair in OPPOSITES:
        for one, opposite in (pair, pair[::-1]):
            for found in words:
                if found[0] == one:
                    yield from _with(clean, found, opposite)
    yield from _moved(clean, tokens)
    for found in reversed(words):
        for other in words:
            if found[0][0].isupper() == other[0][0].isupper():
                yield from _with(clean, found, other[0])


def _with(clean: str, found: re.Match[str], other: str) -> Iterator[str]:
    if found[0].lower() != other.lower():
        yield clean[: found.start()] + other + clean[found.end() :]


def _moved(clean: str, tokens: tuple[Token, ...]) -> Iterator[str]:
    """In a text that repeats itself, the copies of the last token and of another one exchanged.

    What follows the last token's copies is then another token.
    """
    letters = [each for each in tokens if each.end > each.start]
    if not letters or not any(each.id == letters[-1].id for each in letters[:-1]):
        return
    pieces = [clean[each.start : each.end] for each in letters]
    *before, last = pieces
    for other in dict.fromkeys(reversed(before[:-1])):
        if other != last and "".join(pieces) == clean:
            swap = {last: other, other: last}
            yield "".join([*(swap.get(each, each) for each in before), last])
