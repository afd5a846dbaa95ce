"""A reader's table as CSV: two columns by their names; what is wrong is said with its line."""

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

from explorer.system import limits
from explorer.text import TextError
from explorer.text.checked_text import checked

SEPARATORS = ",;\t"
"""Spreadsheets write one of these, by the language of their machine."""


def read_pairs(table: str, columns: tuple[str, str]) -> list[tuple[str, str]]:
    """The values of these columns of each line, stripped; empty lines are left out.

    Of lines that are the same the first one stays. TextError, in one sentence, for any other
    table.
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
