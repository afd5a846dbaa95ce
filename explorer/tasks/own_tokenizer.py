"""The tokenizer of a task that is made of a reader's text: trained on it, or brought along.

What is trained sees the training part alone.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from explorer.text import TextError, TrainedWith, byte_tokenizer, word_tokenizer, words_of
from explorer.text.published.adopted import adopted
from explorer.text.token import DECODER, Reads

WORDS, SUBWORDS = "words", "subwords"
MAX_WORDS = 20_000
"""Rarer words than this many are read as `<unk>`, like words that were never seen."""
MAX_SUBWORDS = 1_024
LEAST_KNOWN = 0.5
"""The share of the tokens of a text that its tokenizer has to know."""

Pairs = list[tuple[str, Any]]


def tokenizer_for(choice: str | TrainedWith, training: str, reads: Reads = DECODER) -> TrainedWith:
    """The tokenizer for this training text: one of its own words or subwords, or another.

    `choice` is "words", "subwords", the whole of a tokenizer.json, or the tokenizer of a model
    that is trained further. TextError, in one sentence, where that is none, or knows little of the
    text.
    """
    if choice == WORDS:
        words = Counter(words_of(training.lower()))
        common = [word for word, _ in words.most_common(MAX_WORDS)]
        return word_tokenizer(common, reads, lowercase=True)
    if choice == SUBWORDS:
        return byte_tokenizer(training, MAX_SUBWORDS, reads)
    tokenizer = adopted(choice, reads) if isinstance(choice, str) else choice
    _check_knows(tokenizer, training)
    return tokenizer


def unseen(tokenizer: TrainedWith, held_out: Pairs, training: Collection[str]) -> Pairs:
    """The held-out examples whose text the model does not read in training.

    Texts that differ may be the same tokens: in capitals alone, or in words that are unknown.
    """
    known = set(map(tuple, tokenizer.many_ids(list(training))))
    ids = tokenizer.many_ids([text for text, _ in held_out])
    return [each for each, row in zip(held_out, ids, strict=True) if tuple(row) not in known]


def typical(texts: Sequence[str]) -> tuple[str, ...]:
    """Four texts to begin with: neither short nor long ones, the same ones every time."""
    by_length = sorted(texts, key=lambda text: (len(text), text))
    middle = len(by_length) // 2
    return tuple(by_length[middle : middle + 4])


def _check_knows(tokenizer: TrainedWith, training: str) -> None:
    ids = tokenizer.corpus_ids(training)
    known = sum(number != tokenizer.unk_id for number in ids) / max(1, len(ids))
    if known < LEAST_KNOWN:
        raise TextError(
            f"The tokenizer knows {known:.0%} of the tokens of this text: choose another one, or "
            "let one be trained on the text."
        )
