"""A reader's data for a task: a table, of which two columns are read, and a tokenizer.

Errors in a table name the line. The tokenizer is trained on the training part, or is the reader's.
"""

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from explorer.system import limits
from explorer.text import TextError, TrainedWith, byte_tokenizer, word_tokenizer, words_of
from explorer.text.checked_text import checked
from explorer.text.published.adopted import adopted
from explorer.text.token import DECODER, Reads
from models.file_text import visible

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
SAYS_SEPARATOR = re.compile(r'"?sep=([^\w\s"]|\t)"?\s*$', re.IGNORECASE)
"""A line above the table with which Excel says its separator."""


def read_pairs(table: str, columns: tuple[str, str]) -> tuple[dict[tuple[str, str], int], str]:
    """The distinct stripped values of these columns, with the last line that each begins on.

    The sentence counts what of the table is left out, and is empty without any. TextError says in
    one sentence what is wrong with any other table.
    """
    table = visible(checked(table, limits.CORPUS_CHARACTERS)).removeprefix("\ufeff")
    named = " and ".join(columns)
    if not table.strip():
        raise TextError(f"The table is empty: give it a first line that names the columns {named}.")
    first, *_ = table.lstrip().splitlines()
    says = SAYS_SEPARATOR.match(first)
    separator = says[1] if says else max(SEPARATORS, key=first.count)
    rows = _numbered_rows(table, separator)
    filled = (values for _, values in rows if _is_filled(values))
    header = next(islice(filled, 1 if says else 0, None), [])
    names = [name.strip().lower() for name in header]
    if not set(columns) <= set(names):
        raise TextError(f"The table needs a first line that names the columns {named}.")
    if twice := next((name for name in columns if names.count(name) > 1), None):
        raise TextError(f"The first line names the column {twice} twice: rename one of them.")
    pairs: dict[tuple[str, str], int] = {}
    empty = repeated = 0
    for line, values in rows:
        if not _is_filled(values):
            empty += 1
            continue
        if len(values) > len(names):
            raise TextError(
                f"Line {line} has more columns than the first one: put a text with a "
                "separator in it in quotes."
            )
        by_name = dict(zip(names, map(str.strip, values), strict=False))
        pair = by_name.get(columns[0], ""), by_name.get(columns[1], "")
        if not all(pair):
            missing = columns[1] if pair[0] else columns[0]
            raise TextError(f"Line {line} has no {missing}: fill it in, or leave the line out.")
        repeated += pairs.pop(pair, 0) > 0
        pairs[pair] = line
    left_out = {"empty row": empty, "repeated row": repeated, "other column": len(names) - 2}
    counts = [f"{n:,} {noun}{'s' * (n > 1)}" for noun, n in left_out.items() if n]
    return pairs, f"Left out of the table: {', '.join(counts)}." if counts else ""


def _numbered_rows(table: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Every row with the line that it begins on, which is where a quote was not closed."""
    reader = csv.reader(io.StringIO(table, newline=""), delimiter=separator, strict=True)
    line = 1
    try:
        for values in reader:
            yield line, values
            line = reader.line_num + 1
    except csv.Error as error:
        if "field larger" in str(error):
            raise TextError(
                f"Line {line} of the table cannot be read; save it again as CSV."
            ) from error
        raise TextError(
            f"A quote in line {line} is never closed, or closes before the text ends: close it at "
            "the end, and write a quote inside of the text twice."
        ) from error


def _is_filled(values: Sequence[str]) -> bool:
    return any(value.strip() for value in values)


def tokenizer_for(choice: str | TrainedWith, training: str, reads: Reads = DECODER) -> TrainedWith:
    """The tokenizer for this training text: of the text's own words or subwords, or another.

    `choice` is "words", "subwords", the whole of a tokenizer.json, or the tokenizer of a model
    that is trained further. TextError says in one sentence that it is invalid, or knows too little
    of the text.
    """
    if choice == WORDS:
        common = [word for word, _ in Counter(words_of(training.lower())).most_common(MAX_WORDS)]
        return word_tokenizer(common, reads, lowercase=True)
    if choice == SUBWORDS:
        return byte_tokenizer(training, MAX_SUBWORDS, reads)
    tokenizer = adopted(choice, reads) if isinstance(choice, str) else choice
    ids = tokenizer.corpus_ids(training)
    share = sum(number != tokenizer.unk_id for number in ids) / max(1, len(ids))
    if share < LEAST_KNOWN:
        raise TextError(
            f"The tokenizer knows {share:.0%} of the tokens of this text: choose another one, or "
            "let one be trained on the text."
        )
    return tokenizer


def unseen(
    tokenizer: TrainedWith, held_out: Pairs, training: Collection[str], noun: str
) -> tuple[Pairs, str]:
    """Held-out examples whose tokens are not read in training, and a note on the others.

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
    same = len(held_out) - len(new)
    note = f"Not measured, since they read like a {noun} that is trained on: {same:,}."
    return new, note if same else ""


def set_aside(items: Sequence[Item]) -> Sequence[Item]:
    """A fifth of these items, at most `MOST_HELD_OUT`, at equal distances."""
    return items[:: max(5, math.ceil(len(items) / MOST_HELD_OUT))]


def typical(texts: Sequence[str]) -> tuple[str, ...]:
    """Four texts of medium length for a start, always the same."""
    by_length = sorted(texts, key=lambda text: (len(text), text))
    middle = len(by_length) // 2
    return tuple(by_length[middle : middle + 4])
