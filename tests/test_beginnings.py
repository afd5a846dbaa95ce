"""What is kept of a too long text fits and is its beginning; of plain words one more would not."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer import library
from explorer.beginnings import cut
from explorer.reading import ReadingError, read
from explorer.text import byte_tokenizer
from explorer.text.special import DECODER
from tests import zoo

PIECES = byte_tokenizer("the cat and the hat 😀 " * 20, 280, DECODER)
TEXTS = st.text(alphabet="the catnd😀é\n", min_size=1, max_size=60).filter(str.strip)


@given(TEXTS, st.integers(2, 20))
def test_a_beginning_that_fits(text: str, most: int) -> None:
    found = cut(PIECES.encode, text, "", most)
    if found is None:
        return
    assert text.startswith(found.kept_text)
    assert len(PIECES.encode(found.kept_text)) <= most
    if found.kept_text != text:
        assert len(PIECES.encode(text)) > most


def test_as_much_as_fits_of_plain_words() -> None:
    text = "the cat and the hat"
    found = cut(PIECES.encode, text, "", 5)
    assert found is not None
    assert len(PIECES.encode(found.kept_text)) == 5
    more = next(token.end for token in PIECES.encode(text) if token.end > len(found.kept_text))
    assert len(PIECES.encode(text[:more])) > 5
    assert found.said == f"its first {len(found.kept_text)} characters"


def test_nothing_fits_where_special_tokens_take_all() -> None:
    assert cut(PIECES.encode, "the cat", "", 1) is None


@pytest.mark.parametrize(
    ("text", "pair", "said"),
    [
        ("the cat", "the dog " * 60, "all of it and the first "),
        ("the cat " * 60, "the dog", "its first "),
    ],
)
def test_of_two_texts_the_second_is_cut_first(
    tmp_path: Path, text: str, pair: str, said: str
) -> None:
    opened = library.opened_from(zoo.bert(tmp_path / "bert"), "bert")
    with pytest.raises(ReadingError, match="reads at most 64: shorten it to " + said) as error:
        read(opened, text, pair)
    found = error.value.cut
    assert found is not None
    assert (found.text, found.pair) == (text, pair)
    assert len(read(opened, found.kept_text, found.kept_pair).tokens) == 64
