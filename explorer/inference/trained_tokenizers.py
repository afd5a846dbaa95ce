"""What tokenizers can be learnt from here, and what was learnt of it, kept for a while."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from itertools import islice
from operator import itemgetter
from threading import Lock

from cachetools import LRUCache, cached

from explorer.inference.results_cache import size_of
from explorer.snippets.source import ROOT
from explorer.tasks.translation import translation_sentences
from explorer.text.bpe_training import APART, BPE, Learnt, learn
from explorer.text.limits import TextError, checked
from explorer.text.own_tokenizers import MadeHere, after, of_pieces
from explorer.text.unigram import MOST_LEARNT, UNIGRAM, Unigram, learn_unigram

PAPER = "low, lower, newest, widest"
TRANSLATION = "Sentences to translate"
README = "The README of this app"
SHIPPED = (TRANSLATION, PAPER, README)
COUNTS = {"low": 5, "lower": 2, "newest": 6, "widest": 3}
"""The example of Sennrich et al. 2016."""

MOST_CHARACTERS = 1_000_000
"""Longest text of a reader's own: every step of it is drawn at once."""

LONGEST_WORD = 10_000
"""The library's time grows with the square of it: minutes for a megabyte in one word."""

SIZES = (5, 10, 20, 50, 100, 200, 500, 1_000)
"""Pieces of a Unigram beside the characters of its text."""

KEPT = 24
"""Unigrams, which are small: so is the beginning of a text that they are learnt from."""

BYTES_KEPT = 100_000_000
"""Of all rules together, with the texts; what is larger alone is learnt anew each time."""


@cache
def shipped(name: str) -> str:
    """A text that comes with the app."""
    if name == PAPER:
        return " ".join(word for word, times in COUNTS.items() for _ in range(times))
    if name == TRANSLATION:
        return "\n".join(islice(translation_sentences(held_out=False), 2_000))
    return (ROOT / "README.md").read_text("utf-8")


def rules(text: str, most: int, way: str = BPE) -> Learnt:
    """Rules of this text; TextError says in a sentence why there are none."""
    return _rules(text, most, way)[0]


@cached(LRUCache(BYTES_KEPT, getsizeof=itemgetter(1)), lock=Lock())
def _rules(text: str, most: int, way: str) -> tuple[Learnt, int]:
    """With the bytes that they hold."""
    _refuse_giants(checked(text, MOST_CHARACTERS), way)
    made = learn(text, most, way)
    return made, bytes_of(text, made)


def bytes_of(text: str, made: Learnt) -> int:
    """What hangs on rules at most: the text, and every state that will be kept of its words."""
    states = made.states[0].nbytes * (1 + len(made.rules) // APART)
    return size_of((text, made.tokens, made.rules)) + made.counts.nbytes + states


def _refuse_giants(text: str, way: str) -> None:
    """TextError where one word is too long; to byte-level BPE white space is one as well."""
    words = max(map(len, text.split()), default=0)
    spaces = max(map(len, re.findall(r"\s+", text)), default=0) if way == BPE else 0
    if max(words, spaces) <= LONGEST_WORD:
        return
    found, way_out = (
        (f"{words:,} characters without a space", "put spaces or lines between its words")
        if words > LONGEST_WORD
        else (f"{spaces:,} spaces without a word", "take some of them out")
    )
    raise TextError(
        f"The text has {found} between them; at most {LONGEST_WORD:,} fit, so {way_out}."
    )


def sizes(text: str, most: int) -> list[int]:
    """The vocabularies that are shown of a Unigram, the largest first, as it is learnt."""
    characters = len({*text[:MOST_LEARNT]} - {*" \n\t\r"}) + 2  # the space mark, the unknown
    return [characters + more for more in reversed(SIZES) if more <= most]


def pieces(text: str, size: int) -> Unigram:
    """The pieces of the beginning of this text, as much of it as is learnt from."""
    return _pieces(checked(text, MOST_CHARACTERS)[:MOST_LEARNT], size)


_pieces = lru_cache(maxsize=KEPT)(learn_unigram)


def tokenizer(text: str, way: str, most: int) -> MadeHere:
    """What was learnt in the end: all rules, or the largest vocabulary of pieces."""
    if way == UNIGRAM:
        return of_pieces(pieces(text, sizes(text, most)[0]))
    learnt = rules(text, most, way)
    return after(learnt, len(learnt.rules))
