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

from explorer.text.apply_merges import Rule, Units, merged
from explorer.text.counting import in_parts
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

NORMALIZER = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
"""WordPiece reads texts as BERT does, but keeps capitals and accents."""


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
    states: dict[int, Units] = field(default_factory=dict, repr=False)

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
        units = _units(_words_in_order(text, self.way), self.way, numbers)
        merged_units = merged(units, self.rules[:step], len(self.tokens) + 1)
        return [unit - 1 for unit in merged_units.tolist() if unit]

    def keep_states(self) -> None:
        """Go through all rules once, so that no step is far from a state that is kept."""
        last = len(self.rules) // APART * APART
        if last not in self.states:
            self._state(last)

    def _state(self, step: int) -> Units:
        """All words after so many rules; some of the states on the way there are kept."""
        begun = max(at for at in tuple(self.states) if at <= step)  # others may add to them
        state, size = self.states[begun], len(self.tokens) + 1
        for until in [*range(begun // APART * APART + APART, step, APART), step]:
            state = merged(state, self.rules[begun:until], size)
            begun = until
            if until % APART == 0:
                self.states[until] = state
        return state

    def _counted(self, state: Units) -> Counted:
        units = state.astype(np.int64)
        is_unit = units > 0
        times = np.append(self.counts, 0)[np.cumsum(~is_unit)]
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
    library.pre_tokenizer = _splitter(way)
    options: dict[str, Any] = {"show_progress": False}
    if way == BPE:
        alphabet = options["initial_alphabet"] = sorted(byte_alphabet())
    else:
        text = NORMALIZER.normalize_str(text)
        # Said first, they are numbered as they stand here; else as the library meets them.
        alphabet = options["special_tokens"] = _word_piece_alphabet(text)
        options["continuing_subword_prefix"] = GOES_ON
    trainer = BpeTrainer(vocab_size=len(alphabet) + rules, **options)
    library.train_from_iterator(in_parts(text), trainer)
    words = counted_words(trainer)
    if not words:
        raise TextError(NOTHING)
    stored = json.loads(library.to_str())["model"]
    numbers: dict[str, int] = stored["vocab"]
    prefix = GOES_ON if way == WORDPIECE else ""
    joined = (
        (numbers[left], numbers[right], numbers[left + right.removeprefix(prefix)])
        for left, right in stored["merges"]
    )
    return Learnt(
        way,
        tuple(sorted(numbers, key=numbers.__getitem__)),
        len(alphabet),
        tuple(joined),
        np.array(list(words.values()), dtype=np.int64),
        {0: _units(words, way, numbers)},
    )


def counted_words(trainer: BpeTrainer) -> dict[str, int]:
    """How often each word stood in what the library has learnt from, which it keeps."""
    found: dict[str, int] = json.loads(trainer.__getstate__())["BpeTrainer"]["words"]
    return found


def _word_piece_alphabet(text: str) -> list[str]:
    letters = sorted({*text} - {" "})  # the normalizer leaves no other space
    return [UNKNOWN, *letters, *(GOES_ON + letter for letter in letters)]


def _splitter(way: str) -> pre_tokenizers.PreTokenizer:
    if way == BPE:
        return pre_tokenizers.ByteLevel(add_prefix_space=False)
    return pre_tokenizers.BertPreTokenizer()


def _words_in_order(text: str, way: str) -> list[str]:
    text = text if way == BPE else NORMALIZER.normalize_str(text)
    return [word for word, _ in _splitter(way).pre_tokenize_str(text)]


def _units(words: Iterable[str], way: str, numbers: Mapping[str, int]) -> Units:
    """Words before any rule: their bytes, or their letters of which the later ones go on."""
    first = {ord(name): chr(number + 1) for name, number in numbers.items() if len(name) == 1}
    later = first
    if way == WORDPIECE:
        marked = {
            name.removeprefix(GOES_ON): n for name, n in numbers.items() if name[:2] == GOES_ON
        }
        later = {ord(name): chr(number + 1) for name, number in marked.items() if len(name) == 1}
    joined = "".join(f"{word[0].translate(first)}{word[1:].translate(later)}\0" for word in words)
    return np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), "<u4")
