"""Rules learnt before one's eyes: which pairs stand in the text, and which of them is merged.

The rules are the library's own training; a step is the text as they left it, with every
pair counted. The most frequent pair is merged; of equals the one whose first token has the
lower number, then the second. A test finds the library's next rule in every step.
Sources: Neural Machine Translation of Rare Words with Subword Units (Sennrich et al. 2016),
section 3.2; Japanese and Korean Voice Search (Schuster and Nakajima 2012) for WordPiece. The
library's trainer of WordPiece is that of byte-pair encoding with ## before what goes on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer as Library
from tokenizers import models, normalizers, pre_tokenizers
from tokenizers.trainers import BpeTrainer

from explorer.text.counting import byte_words, in_parts, spaced_words
from explorer.text.labels import byte_alphabet
from explorer.text.limits import MAX_CORPUS_CHARACTERS, TextError, checked

BPE, WORDPIECE = "Byte-level BPE", "WordPiece"
BYTES = 256
MOST_RULES = 5_000
SHOWN = 12
APART = 100
"""Rules between two states that are kept."""

NOTHING = "There is no text to learn from yet: type one or choose another."
GOES_ON, UNKNOWN = "##", "[UNK]"
BETWEEN = "\0"
"""Stands between words; token n is the character n + 1."""

NORMALIZER = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
"""WordPiece reads texts as BERT does, but keeps capitals and accents."""

Rule = tuple[int, int, int]
"""The numbers of two neighbours and of the token that they become."""


@dataclass(frozen=True)
class Pair:
    """Two neighbours by their numbers, and how often they stand together inside words.

    `score` is what textbooks let WordPiece choose by: count ÷ (count of left × count of right).
    """

    left: int
    right: int
    count: int
    score: float


@dataclass(frozen=True)
class Counted:
    """The text after so many rules: the pairs that come first, and its tokens in all.

    `pairs` are the most frequent, `scored` those of the highest score; `equals` pairs are as
    frequent as the first.
    """

    pairs: tuple[Pair, ...]
    scored: tuple[Pair, ...]
    equals: int
    kinds: int
    tokens: int


@dataclass(frozen=True, eq=False)
class Learnt:
    """Rules in the order they were learnt, and the words that they were learnt from.

    `tokens` are the names of all tokens by number, of which the first `alphabet` were there
    before any rule.
    """

    way: str
    tokens: tuple[str, ...]
    alphabet: int
    rules: tuple[Rule, ...]
    counts: NDArray[np.int64]
    states: dict[int, str] = field(default_factory=dict, repr=False)

    def walk(self) -> None:
        """Go half of the way, so that no step is far from a state that is kept."""
        self._state(len(self.rules) // 2)

    def after(self, step: int) -> Counted:
        """What stands there after so many rules. Cost grows with the different words."""
        return self._counted(self._state(step))

    def vocabulary(self, step: int) -> dict[str, int]:
        """Every token that there is after so many rules, and its number."""
        most = max((new for *_, new in self.rules[:step]), default=-1)
        size = max(self.alphabet, most + 1)
        return {token: number for number, token in enumerate(self.tokens[:size])}

    def pieces(self, text: str, step: int) -> list[int]:
        """The numbers of the tokens of a text that was learnt from, after so many rules."""
        numbers = {token: number for number, token in enumerate(self.tokens)}
        words = [_units(word, self.way, numbers) for word in _words_in_order(text, self.way)]
        state = self._applied(BETWEEN.join(words), 0, step)
        return [ord(unit) - 1 for unit in state if unit != BETWEEN]

    def _state(self, step: int) -> str:
        """All words after so many rules; some of the states on the way there are kept."""
        begun = max(at for at in self.states if at <= step)
        state = self.states[begun]
        for until in [*range(begun // APART * APART + APART, step, APART), step]:
            state = self._applied(state, begun, until)
            begun = until
            if until % APART == 0:
                self.states[until] = state
        return state

    def _applied(self, state: str, begun: int, until: int) -> str:
        for left, right, new in self.rules[begun:until]:  # leftmost first, as the library does
            state = state.replace(chr(left + 1) + chr(right + 1), chr(new + 1))
        return state

    def _counted(self, state: str) -> Counted:
        units = np.frombuffer(state.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.int64)
        is_unit = units > 0
        times = self.counts[np.cumsum(~is_unit)]
        size = len(self.tokens) + 1
        beside = is_unit[:-1] & is_unit[1:]
        codes = (units[:-1] * size + units[1:])[beside]
        kinds, place = np.unique(codes, return_inverse=True)  # rising: of equals the lower ones
        found = np.bincount(place, times[:-1][beside], len(kinds)).astype(np.int64)
        alone = np.bincount(units[is_unit], times[is_unit], size)
        score = found / (alone[kinds // size] * alone[kinds % size])

        frequent, scored = (
            tuple(
                Pair(*divmod(int(kinds[n]) - size - 1, size), int(found[n]), float(score[n]))
                for n in np.argsort(-by, kind="stable")[:SHOWN]
            )
            for by in (found, score)
        )
        equals = int((found == found.max()).sum()) if len(found) else 0
        return Counted(frequent, scored, equals, len(kinds), int(times[is_unit].sum()))


def learn(text: str, rules: int, way: str = BPE) -> Learnt:
    """At most so many rules, by the library. Cost grows with the text, counted once."""
    text = checked(text, MAX_CORPUS_CHARACTERS)
    rules = min(rules, MOST_RULES)
    library = Library(models.BPE())
    library.pre_tokenizer = splitter = _splitter(way)
    options: dict[str, Any] = {"show_progress": False}
    if way == BPE:
        words = byte_words(text, splitter)
        alphabet = options["initial_alphabet"] = sorted(byte_alphabet())
    else:
        text = NORMALIZER.normalize_str(text)
        words = spaced_words(text, splitter)
        # Said first, they are numbered as they stand here; else as the library meets them.
        alphabet = options["special_tokens"] = _word_piece_alphabet(words)
        options["continuing_subword_prefix"] = GOES_ON
    if not words:
        raise TextError(NOTHING)
    trainer = BpeTrainer(vocab_size=len(alphabet) + rules, **options)
    library.train_from_iterator(in_parts(text), trainer)
    stored = json.loads(library.to_str())["model"]
    numbers: dict[str, int] = stored["vocab"]
    prefix = GOES_ON if way == WORDPIECE else ""
    joined = (
        (numbers[left], numbers[right], numbers[left + right.removeprefix(prefix)])
        for left, right in stored["merges"]
    )
    units = [_units(word, way, numbers) for word in words]
    learnt = Learnt(
        way,
        tuple(sorted(numbers, key=numbers.__getitem__)),
        len(alphabet),
        tuple(joined),
        np.array(list(words.values()), dtype=np.int64),
        {0: BETWEEN.join(units)},
    )
    learnt.walk()
    return learnt


def _word_piece_alphabet(words: Iterable[str]) -> list[str]:
    letters = sorted({letter for word in words for letter in word})
    return [UNKNOWN, *letters, *(GOES_ON + letter for letter in letters)]


def _splitter(way: str) -> pre_tokenizers.PreTokenizer:
    if way == BPE:
        return pre_tokenizers.ByteLevel(add_prefix_space=False)
    return pre_tokenizers.BertPreTokenizer()


def _words_in_order(text: str, way: str) -> list[str]:
    text = text if way == BPE else NORMALIZER.normalize_str(text)
    return [text[start:end] for _, (start, end) in _splitter(way).pre_tokenize_str(text)]


def _units(word: str, way: str, numbers: Mapping[str, int]) -> str:
    """A word before any rule: its bytes, or its letters of which the later ones go on."""
    if way == BPE:
        return word.encode().decode("latin-1").translate(_UNITS_OF_BYTES)
    names = (GOES_ON + letter if place else letter for place, letter in enumerate(word))
    return "".join(chr(numbers[name] + 1) for name in names)


_UNITS_OF_BYTES = {
    byte_alphabet()[letter]: chr(number + 1)
    for number, letter in enumerate(sorted(byte_alphabet()))
}
