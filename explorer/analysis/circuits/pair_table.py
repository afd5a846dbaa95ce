"""The reader's own pairs of texts, as a table in CSV: clean, corrupted, answer, against."""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import fields

from explorer.analysis.circuits.text_pairs import PairError, TextPair
from explorer.system.limits import PAIRS, TABLE_BYTES
from models.file_text import visible

COLUMNS = tuple(field.name for field in fields(TextPair))
SEPARATORS = ",;\t"
"""The separator is the one that the first row has most often without a space after it."""


def pairs_of_csv(data: bytes) -> dict[int, TextPair]:
    """The pairs by the line on which the row of each ends. PairError names the line with a fault.

    The first row may name the columns, in any order. Otherwise the columns are those of
    `TextPair`, and the answers may be left out.
    """
    TABLE_BYTES.check(len(data), PairError)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise PairError(f"Line {line} is not text in UTF-8: save the table as UTF-8.") from error
    columns: Sequence[str] = COLUMNS
    pairs: dict[int, TextPair] = {}
    for line, cells in _rows(text):
        names = [cell.strip().lower() for cell in cells]
        if not pairs and {"clean", "corrupted"}.issubset(names):
            columns = names
        else:
            pairs[line] = _pair(line, cells, columns)
    if not pairs:
        raise PairError("There is no pair in this table: a row has a clean and a corrupted text.")
    PAIRS.check(len(pairs), PairError)
    return pairs


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Every row that is not empty, with the number of its last line."""
    lines = visible(text).splitlines(keepends=True)
    first = next(filter(str.strip, lines), "")
    separator = max(SEPARATORS, key=lambda sign: len(re.findall(rf"{sign}(?! )", first)))
    reader = csv.reader(lines, delimiter=separator, strict=True)
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield reader.line_num, cells
    except csv.Error as error:
        raise PairError(
            f"Line {reader.line_num} is no row of a CSV table: put texts with quotes or commas "
            "into quotes, and double the quotes inside."
        ) from error


def _pair(line: int, cells: Sequence[str], columns: Sequence[str]) -> TextPair:
    if len(cells) > len(columns):
        raise PairError(
            f"Line {line} has {len(cells)} cells and there are {len(columns)} columns: put texts "
            "with commas into quotes."
        )
    row = dict(zip(columns, cells, strict=False))
    texts = {name: row.get(name, "") for name in COLUMNS}
    for name in ("clean", "corrupted"):
        if not texts[name].strip():
            raise PairError(f"Line {line} has no {name} text: give one, or leave the row out.")
    return TextPair(**texts)
