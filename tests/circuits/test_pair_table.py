"""The reader's own pairs as CSV: what is read, and which line is none."""

import pytest

from explorer.circuits.pair_table import pairs_of_csv
from explorer.circuits.text_pairs import PairError, TextPair

PAIR = TextPair("When Mary, and", "When John, and", " Mary", " John")
READ = {
    "no header": '"When Mary, and","When John, and", Mary, John\n',
    "a header": 'clean,corrupted,answer,against\n"When Mary, and","When John, and", Mary, John\n',
    "in another order": 'Against,Corrupted,Number,Answer,Clean\n John,"When John, and",3, Mary,'
    '"When Mary, and"\n',
    "with semicolons": "When Mary, and;When John, and; Mary; John\n",
    "with tabs, a mark and empty rows": "\ufeff\r\nWhen Mary, and\tWhen John, and\t Mary\t John\r\n"
    "\t\r\n",
}


@pytest.mark.parametrize("name", READ)
def test_tables_are_read(name: str) -> None:
    assert [*pairs_of_csv(READ[name].encode()).values()] == [PAIR]


def test_answers_may_be_left_out_and_lines_are_counted() -> None:
    found = pairs_of_csv(b'clean,corrupted,answer\n"a\nb",c\n\nd,e,f\n')
    assert found == {3: TextPair("a\nb", "c"), 5: TextPair("d", "e", "f")}


COMMAS = "put texts with commas into quotes."
QUOTES = (
    "Line 2 is no row of a CSV table: put texts with quotes or commas into quotes, and double the "
    "quotes inside."
)
REFUSED: dict[str, tuple[bytes, str]] = {
    "empty": (b" \n", "There is no pair in this table: a row has a clean and a corrupted text."),
    "a header alone": (
        b"clean,corrupted\n",
        "There is no pair in this table: a row has a clean and a corrupted text.",
    ),
    "one cell": (b"a,b\nc\n", "Line 2 has no corrupted text: give one, or leave the row out."),
    "no clean text": (b"a,b\n ,d\n", "Line 2 has no clean text: give one, or leave the row out."),
    "many cells": (b"a,b\n1,2,3,4,5\n", "Line 2 has 5 cells and there are 4 columns: " + COMMAS),
    "more than the header": (
        b"clean,corrupted\n1,2,3\n",
        "Line 2 has 3 cells and there are 2 columns: " + COMMAS,
    ),
    "open quotes": (b'a,b\n"c,d\n', QUOTES),
    "text behind quotes": (b'a,b\n"c"d,e\n', QUOTES),
    "not UTF-8": (b"a,b\n\xff,d\n", "Line 2 is not text in UTF-8: save the table as UTF-8."),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_row_is_named_by_its_line(name: str) -> None:
    data, sentence = REFUSED[name]
    with pytest.raises(PairError) as refused:
        pairs_of_csv(data)
    assert str(refused.value) == sentence
