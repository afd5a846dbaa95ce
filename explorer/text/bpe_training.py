"""Training the merges of byte-pair encoding and WordPiece, with the pair counts of every step.

The library trains the merges; here every pair is counted in the text after any number of them.
The most frequent pair is merged next; among equals, the pair whose first token has the lower ID,
then the second. A test checks that this predicts the library's next merge at every step.
Sources: Neural Machine Translation of Rare Words with Subword Units (Sennrich et al. 2016),
section 3.2; Japanese and Korean Voice Search (Schuster and Nakajima 2012) for WordPiece. The
library trains WordPiece as byte-pair encoding, with ## before what continues a word.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from explorer.system import cooperative, limits
from explorer.text.checked_text import TextError, checked
from explorer.text.library_training import (
    BPE,
    GOES_ON,
    NO_TEXT,
    NORMALIZER,
    UNKNOWN,
    WORD_SPLITTERS,
    WORDPIECE,
    learned_merges,
)
from explorer.text.visible_text import byte_alphabet

SAFE = re.compile(r"(?<=\S)(?= \S)|(?<=\S\n)(?=\S)")
"""Places between words, both for GPT-2's pattern and for BERT's."""

PART = 20_000


def in_parts(text: str, longest: int = PART) -> list[str]:
    """The text, cut between words: the library learns the same from the parts, but faster."""
    parts, begun = [], 0
    while len(text) - begun > longest:
        cut = SAFE.search(text, begun + longest)
        if cut is None:
            break
        parts.append(text[begun : cut.start()])
        begun = cut.start()
    return [*parts, text[begun:]]


def beginning(text: str, most: int) -> str:
    """The first whole words within `most` characters, or that many characters of a longer word."""
    if len(text) <= most:
        return text
    cuts = [cut.start() for cut in SAFE.finditer(text[: most + 2])]
    return text[: max((cut for cut in cuts if cut <= most), default=most)]


MergeIds = tuple[int, int, int]
"""The IDs of two neighbours and of the token that they become."""

Units = NDArray[np.uint32]
"""The tokens of all words in one array: token ID n is stored as n + 1, and a 0 ends every word."""


def apply_merges(units: Units, merges: Iterable[MergeIds], size: int) -> Units:
    """The same words after these merges, each applied from the left, as the library does.

    `size` is larger than every unit. A merged token takes the place of its left half, and the
    places that remain are a linked list, so a merge costs time only where it applies.
    """
    width = np.min_scalar_type(size * size).type
    unit, last = units.astype(width), len(units) - 1
    before, after = np.arange(-1, last), np.arange(1, last + 2)
    code = unit * width(size)  # of a pair, at the place of its left half
    code[:-1] += unit[1:]
    is_left = np.ones(len(units), dtype=bool)
    for left, right, new in merges:
        at = np.flatnonzero(code == width((left + 1) * size + right + 1))
        if not len(at):  # most merges find nothing in a short text
            continue
        if left == right:
            at = _every_other(at, after)
        gone = after[at]
        unit[at], is_left[gone], code[gone] = new + 1, False, 0
        after[at] = after[gone]
        before[after[at]] = at
        code[at] = unit[at] * width(size) + unit[after[at]]
        front = before[at]
        code[front] = unit[front] * width(size) + unit[at]
    return unit[is_left].astype(np.uint32)


def _every_other(at: NDArray[np.intp], after: NDArray[np.intp]) -> NDArray[np.intp]:
    """Every other pair among neighbours that share a token: aaaaa becomes aa aa a."""
    order = np.arange(len(at))
    goes_on = np.append(False, after[at[:-1]] == at[1:])[: len(at)]
    begun = np.maximum.accumulate(np.where(goes_on, 0, order))
    return at[(order - begun) % 2 == 0]


MOST_TRAINED_MERGES = 5_000
SHOWN = 12
STATE_EVERY = 100
"""Merges from one stored state to the next."""


@dataclass(frozen=True)
class CountedPair:
    """The IDs of two tokens, and how often they are neighbours inside words.

    `score` is the textbook criterion of WordPiece: count ÷ (count of left × count of right).
    """

    left: int
    right: int
    count: int
    score: float


@dataclass(frozen=True)
class PairCounts:
    """The pair counts of the text after some merges.

    `pairs` are the most frequent, `scored` those with the highest scores; `ties` pairs are as
    frequent as the first. There are `n_pairs` different pairs, and `tokens` in the whole text.
    """

    pairs: tuple[CountedPair, ...]
    scored: tuple[CountedPair, ...]
    ties: int
    n_pairs: int
    tokens: int


@dataclass(frozen=True, eq=False)
class MergeTraining:
    """The merges in their order, and the words of the text with their counts.

    `tokens` are all tokens by ID; the first `alphabet` of them exist before any merge.
    """

    algorithm: str
    tokens: tuple[str, ...]
    alphabet: int
    merges: tuple[MergeIds, ...]
    counts: NDArray[np.int64]
    states: dict[int, Units] = field(default_factory=dict, repr=False)

    def counts_after(self, step: int) -> PairCounts:
        """The pair counts after `step` merges. The cost grows with the different words."""
        units = self._state(step).astype(np.int64)
        is_unit = units > 0
        times = np.append(self.counts, 0)[np.cumsum(~is_unit)]
        size = len(self.tokens) + 1
        is_pair = is_unit[:-1] & is_unit[1:]
        codes = (units[:-1] * size + units[1:])[is_pair]
        pairs, place = np.unique(codes, return_inverse=True)  # rising, so ties go to the lower IDs
        count = np.bincount(place, times[:-1][is_pair], len(pairs)).astype(np.int64)
        alone = np.bincount(units[is_unit], times[is_unit], size)
        score = count / (alone[pairs // size] * alone[pairs % size])

        frequent, scored = (
            tuple(
                CountedPair(*divmod(int(pairs[n]) - size - 1, size), int(count[n]), float(score[n]))
                for n in np.argsort(-by, kind="stable")[:SHOWN]
            )
            for by in (count, score)
        )
        ties = int((count == count.max()).sum()) if len(count) else 0
        return PairCounts(frequent, scored, ties, len(pairs), int(times[is_unit].sum()))

    def vocabulary(self, step: int) -> dict[str, int]:
        """Every token after `step` merges, and its ID."""
        most = max((new for *_, new in self.merges[:step]), default=-1)
        size = max(self.alphabet, most + 1)
        return {token: number for number, token in enumerate(self.tokens[:size])}

    def ids_of(self, text: str, step: int) -> list[int]:
        """The token IDs of a part of the training text, after `step` merges."""
        numbers = {token: number for number, token in enumerate(self.tokens)}
        text = text if self.algorithm == BPE else NORMALIZER.normalize_str(text)
        words = [word for word, _ in WORD_SPLITTERS[self.algorithm].pre_tokenize_str(text)]
        units = _units(words, self.algorithm, numbers)
        merged_units = apply_merges(units, self.merges[:step], len(self.tokens) + 1)
        return [unit - 1 for unit in merged_units.tolist() if unit]

    def keep_states(self) -> None:
        """Apply all merges once, so that a stored state is near every step."""
        last = len(self.merges) // STATE_EVERY * STATE_EVERY
        if last not in self.states:
            self._state(last)

    def _state(self, step: int) -> Units:
        """All words after `step` merges; every hundredth state on the way is stored."""
        begun = max(at for at in tuple(self.states) if at <= step)  # others may add to them
        state, size = self.states[begun], len(self.tokens) + 1
        first = begun // STATE_EVERY * STATE_EVERY + STATE_EVERY
        for until in [*range(first, step, STATE_EVERY), step]:
            cooperative.step()
            state = apply_merges(state, self.merges[begun:until], size)
            begun = until
            if until % STATE_EVERY == 0:
                self.states[until] = state
        return state


def train_merges(text: str, merges: int, algorithm: str = BPE) -> MergeTraining:
    """At most `merges` merges, trained by the library. The cost grows with the text."""
    text = checked(text, limits.CORPUS_CHARACTERS)
    merges = min(merges, MOST_TRAINED_MERGES)
    options: dict[str, Any] = {}
    if algorithm == BPE:
        alphabet = options["initial_alphabet"] = sorted(byte_alphabet())
    else:
        text = NORMALIZER.normalize_str(text)
        letters = sorted({*text} - {" "})  # the normalizer leaves no other space
        alphabet = [UNKNOWN, *letters, *(GOES_ON + letter for letter in letters)]
        # As special tokens they get their IDs in this order, not in the order of the text.
        options["special_tokens"] = alphabet
        options["continuing_subword_prefix"] = GOES_ON
    options["vocab_size"] = len(alphabet) + merges
    learned = learned_merges(in_parts(text), algorithm, options)
    words: dict[str, int] = learned["words"]
    if not words:
        raise TextError(NO_TEXT)
    numbers: dict[str, int] = learned["vocab"]
    prefix = GOES_ON if algorithm == WORDPIECE else ""
    joined = (
        (numbers[left], numbers[right], numbers[left + right.removeprefix(prefix)])
        for left, right in learned["merges"]
    )
    return MergeTraining(
        algorithm,
        tuple(sorted(numbers, key=numbers.__getitem__)),
        len(alphabet),
        tuple(joined),
        np.array(list(words.values()), dtype=np.int64),
        {0: _units(words, algorithm, numbers)},
    )


def _units(words: Iterable[str], algorithm: str, numbers: Mapping[str, int]) -> Units:
    """Words before any merge: their bytes, or their letters, with ## before all but the first."""
    first = {ord(name): chr(number + 1) for name, number in numbers.items() if len(name) == 1}
    later = first
    if algorithm == WORDPIECE:
        marked = {
            name.removeprefix(GOES_ON): n for name, n in numbers.items() if name[:2] == GOES_ON
        }
        later = {ord(name): chr(number + 1) for name, number in marked.items() if len(name) == 1}
    joined = "".join(f"{word[0].translate(first)}{word[1:].translate(later)}\0" for word in words)
    return np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), "<u4")
