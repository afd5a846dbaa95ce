"""What tokenizers can be learnt from here, and what was learnt of it, kept for a while."""

from __future__ import annotations

from functools import cache, lru_cache
from itertools import islice

from explorer.source import ROOT
from explorer.tasks.translation import sentences
from explorer.text.learning import BPE, Learnt, learn
from explorer.text.limits import TextError, checked
from explorer.text.made_here import MadeHere, after, of_pieces
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

KEPT = 6


@cache
def shipped(name: str) -> str:
    """A text that comes with the app."""
    if name == PAPER:
        return " ".join(word for word, times in COUNTS.items() for _ in range(times))
    if name == TRANSLATION:
        return "\n".join(islice(sentences(held_out=False), 2_000))
    return (ROOT / "README.md").read_text("utf-8")


@lru_cache(maxsize=KEPT)
def rules(text: str, most: int, way: str = BPE) -> Learnt:
    """Rules of this text; TextError says in a sentence why there are none."""
    longest = max(map(len, checked(text, MOST_CHARACTERS).split()), default=0)
    if longest > LONGEST_WORD:
        raise TextError(
            f"The text has {longest:,} characters without a space between them; at most "
            f"{LONGEST_WORD:,} fit, so put spaces or lines between its words."
        )
    return learn(text, most, way)


def sizes(text: str, most: int) -> list[int]:
    """The vocabularies that are shown of a Unigram, the largest first, as it is learnt."""
    characters = len({*text[:MOST_LEARNT]} - {*" \n\t\r"}) + 2  # the space mark, the unknown
    return [characters + more for more in reversed(SIZES) if more <= most]


@lru_cache(maxsize=4 * KEPT)
def pieces(text: str, size: int) -> Unigram:
    """The pieces of the beginning of this text, as much of it as is learnt from."""
    return learn_unigram(checked(text, MOST_CHARACTERS)[:MOST_LEARNT], size)


def tokenizer(text: str, way: str, most: int) -> MadeHere:
    """What was learnt in the end: all rules, or the largest vocabulary of pieces."""
    if way == UNIGRAM:
        return of_pieces(pieces(text, sizes(text, most)[0]))
    learnt = rules(text, most, way)
    return after(learnt, len(learnt.rules))
