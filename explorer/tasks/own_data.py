"""A reader's data for a task: a table, of which two columns are read, and a tokenizer.

Errors in a table name the line. The tokenizer is trained on the training part alone, or is the
reader's own.
"""

import csv
import io
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any, TypeVar

from explorer.system import limits
from explorer.text import TextError, TrainedWith, byte_tokenizer, word_tokenizer, words_of
from explorer.text.checked_text import checked
from explorer.text.published.adopted import adopted
from explorer.text.token import DECODER, Reads

WORDS, SUBWORDS = "words", "subwords"
MAX_WORDS = 20_000
"""The commonest words; rarer ones are read as `<unk>`, like words that were never seen."""
MAX_SUBWORDS = 1_024
LEAST_KNOWN = 0.5
"""The share of a text's tokens that its tokenizer must know."""

MOST_HELD_OUT = 500

Pairs = list[tuple[str, Any]]
Item = TypeVar("Item")
SEPARATORS = ",;\t"
"""Spreadsheets write one of these, depending on the language of the machine."""


def read_pairs(table: str, columns: tuple[str, str]) -> list[tuple[str, str]]:
    """The stripped values of these columns in each line, without empty and repeated lines.

    TextError says in one sentence what is wrong with any other table.
    """
    table = checked(table, limits.CORPUS_CHARACTERS).removeprefix("\ufeff")
    named = " and ".join(columns)
    if not table.strip():
        raise TextError(f"The table is empty: give it a first line that names the columns {named}.")
    first, *_ = table.lstrip().splitlines()
    reader = csv.reader(
        io.StringIO(table.lstrip(), newline=""), delimiter=max(SEPARATORS, key=first.count)
    )
    try:
        names = [name.strip().lower() for name in next(reader)]
        if not set(columns) <= set(names):
            raise TextError(f"The table needs a first line that names the columns {named}.")
        return list(dict.fromkeys(_rows(reader, names, columns)))
    except csv.Error as error:
        raise TextError(
            f"Line {reader.line_num} of the table cannot be read; save it again as CSV."
        ) from error


def _rows(reader: Any, names: Sequence[str], columns: tuple[str, str]) -> Iterator[tuple[str, str]]:
    places = [names.index(name) for name in columns]
    for values in reader:
        line = reader.line_num
        if not any(value.strip() for value in values):
            continue
        if len(values) > len(names):
            raise TextError(
                f"Line {line} has more columns than the first one: put a text with a "
                "separator in it in quotes."
            )
        first, second = (values[at].strip() if at < len(values) else "" for at in places)
        if not (first and second):
            missing = columns[0] if not first else columns[1]
            raise TextError(f"Line {line} has no {missing}: fill it in, or leave the line out.")
        yield first, second


def tokenizer_for(choice: str | TrainedWith, training: str, reads: Reads = DECODER) -> TrainedWith:
    """The tokenizer for this training text: of the text's own words or subwords, or another.

    `choice` is "words", "subwords", the whole of a tokenizer.json, or the tokenizer of a model
    that is trained further. TextError says in one sentence that it is invalid, or knows too little
    of the text.
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


def unseen(tokenizer: TrainedWith, held_out: Pairs, training: Collection[str], noun: str) -> Pairs:
    """The held-out examples whose tokens the model does not read in training.

    Different texts may be the same tokens, if only capitals or unknown words differ.
    TextError says in one sentence that none is left; `noun` names the texts.
    """
    trained_rows = set(map(tuple, tokenizer.many_ids(list(training))))
    ids = tokenizer.many_ids([text for text, _ in held_out])
    new = [pair for pair, row in zip(held_out, ids, strict=True) if tuple(row) not in trained_rows]
    if not new:
        raise TextError(
            f"With this tokenizer every held-out {noun} reads like one that is trained on: choose "
            f"another tokenizer, or give {noun}s that differ more."
        )
    return new


def set_aside(items: Sequence[Item]) -> Sequence[Item]:
    """A fifth of these items, at most `MOST_HELD_OUT`, at equal distances."""
    return items[:: max(5, round(len(items) / MOST_HELD_OUT))][:MOST_HELD_OUT]


def typical(texts: Sequence[str]) -> tuple[str, ...]:
    """Four texts of medium length for a start, always the same."""
    by_length = sorted(texts, key=lambda text: (len(text), text))
    middle = len(by_length) // 2
    return tuple(by_length[middle : middle + 4])


def _check_knows(tokenizer: TrainedWith, training: str) -> None:
    ids = tokenizer.corpus_ids(training)
    share = sum(number != tokenizer.unk_id for number in ids) / max(1, len(ids))
    if share < LEAST_KNOWN:
        raise TextError(
            f"The tokenizer knows {share:.0%} of the tokens of this text: choose another one, or "
            "let one be trained on the text."
        )
