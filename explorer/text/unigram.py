"""Unigram: pieces with their probabilities, and the likeliest segmentation of a word.

The library starts from the frequent parts of words and removes those whose loss costs the text
least, until the size is reached. It shows only the result, so each size is trained separately.
Source: Subword Regularization (Kudo 2018), section 3.2.
"""

import math
from dataclasses import dataclass

from explorer.text.checked_text import TextError, checked
from explorer.text.library_training import NO_TEXT, learned_pieces

UNIGRAM = "Unigram"
MAX_UNIGRAM_TEXT = 100_000
"""Characters. On more the library trains for seconds, on a megabyte for minutes."""

LONGEST_PIECE = 16
UNKNOWN = "<unk>"


@dataclass(frozen=True)
class UnigramPieces:
    """Pieces and their log-probabilities, likeliest first; piece 0 is the unknown token."""

    pieces: tuple[tuple[str, float], ...]

    @property
    def scores(self) -> dict[str, float]:
        return dict(self.pieces[1:])


@dataclass(frozen=True)
class Segmentation:
    """A word in pieces, their log-probabilities, and the sum."""

    pieces: tuple[str, ...]
    scores: tuple[float, ...]

    @property
    def score(self) -> float:
        return sum(self.scores)


def train_unigram(text: str, size: int) -> UnigramPieces:
    """At most `size` pieces, trained by the library; every character of the text is one."""
    text = checked(text, MAX_UNIGRAM_TEXT)
    if not text.strip():
        raise TextError(NO_TEXT)
    options = {
        "vocab_size": size,
        "special_tokens": [UNKNOWN],
        "unk_token": UNKNOWN,
        "max_piece_length": LONGEST_PIECE,
    }
    return UnigramPieces(tuple(learned_pieces(text, options)))


def segmentations(word: str, scores: dict[str, float], most: int = 3) -> list[Segmentation]:
    """The likeliest segmentations of a word, best first; none where a character is unknown.

    Dynamic programming over the characters, with the `most` best segmentations of each prefix.
    """
    ways: list[list[Segmentation]] = [[Segmentation((), ())]] + [[] for _ in word]
    for end in range(1, len(word) + 1):
        candidates = []
        for start in range(max(0, end - LONGEST_PIECE), end):
            score = scores.get(word[start:end], -math.inf)
            if score > -math.inf:
                candidates += [
                    Segmentation((*way.pieces, word[start:end]), (*way.scores, score))
                    for way in ways[start]
                ]
        ways[end] = sorted(candidates, key=lambda way: -way.score)[:most]
    return ways[-1]
