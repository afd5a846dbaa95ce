"""Byte-pair rules learnt before one's eyes: which pairs stand in the text, and which is merged.

The rules are the library's own training; a step shows the text as they left it, with every
pair counted. The most frequent pair is merged; of equals the one whose first token has the
lower number, then the second. A test finds the library's next rule in every step.
Source: Neural Machine Translation of Rare Words with Subword Units (Sennrich et al. 2016),
section 3.2.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer as Library
from tokenizers import models, pre_tokenizers
from tokenizers.trainers import BpeTrainer

from explorer.text.limits import MAX_CORPUS_CHARACTERS, checked

BYTES = 256
MOST_RULES = 5_000
SHOWN = 12


@dataclass(frozen=True)
class Pair:
    """Two neighbours and how often they stand together inside words."""

    left: str
    right: str
    count: int


@dataclass(frozen=True)
class Counted:
    """The text after so many rules: the pairs, the most frequent first, and its tokens in all.

    `equals` pairs are as frequent as the first.
    """

    pairs: tuple[Pair, ...]
    equals: int
    kinds: int
    tokens: int


@dataclass(frozen=True, eq=False)
class Learnt:
    """Rules in the order they were learnt, and the words that they were learnt from."""

    rules: tuple[tuple[str, str], ...]
    vocabulary: dict[str, int]
    words: tuple[str, ...]
    counts: NDArray[np.int64]

    def after(self, rules: int) -> Counted:
        """What stands there after so many rules. Cost grows with the different words."""
        model = models.BPE(self.vocabulary, list(self.rules[:rules]))
        pieces = [
            encoding.ids
            for encoding in Library(model).encode_batch(list(self.words), add_special_tokens=False)
        ]
        lengths = np.array([len(each) for each in pieces])
        ids = np.concatenate([np.array(each, dtype=np.int64) for each in pieces])
        times = np.repeat(self.counts, lengths)
        is_last = np.zeros(len(ids), dtype=bool)
        is_last[np.cumsum(lengths) - 1] = True
        inside = ~is_last[:-1]
        size = len(self.vocabulary)
        codes, place = np.unique((ids[:-1] * size + ids[1:])[inside], return_inverse=True)
        found = np.bincount(place, times[:-1][inside]).astype(np.int64)
        order = np.argsort(-found, kind="stable")[:SHOWN]  # codes rise: of equals the lower ids
        names = {number: token for token, number in self.vocabulary.items()}
        pairs = tuple(
            Pair(names[int(codes[n]) // size], names[int(codes[n]) % size], int(found[n]))
            for n in order
        )
        equals = int((found == found.max()).sum()) if len(found) else 0
        return Counted(pairs, equals, len(found), int(times.sum()))


def learn(text: str, rules: int) -> Learnt:
    """At most so many rules of a byte-level BPE. Cost grows with the text, counted once."""
    library = Library(models.BPE())
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = BpeTrainer(
        vocab_size=BYTES + min(rules, MOST_RULES),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    text = checked(text, MAX_CORPUS_CHARACTERS)
    library.train_from_iterator([text], trainer)
    words = Counter(word for word, _ in library.pre_tokenizer.pre_tokenize_str(text))
    stored = json.loads(library.to_str())["model"]
    return Learnt(
        tuple((left, right) for left, right in stored["merges"]),
        stored["vocab"],
        tuple(words),
        np.array(list(words.values()), dtype=np.int64),
    )
