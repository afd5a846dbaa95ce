"""Token numbers typed as they are: where they stand, and what is no token."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.catalog.tokenizers import TYPE_IDS, TypedTokenIds
from explorer.text import TextError, steps

NUMBERS = TypedTokenIds(50)


@given(st.lists(st.tuples(st.integers(0, 49), st.text(" \t\n\u00a0", min_size=1, max_size=3))))
def test_every_number_is_a_token_at_its_place(typed: list[tuple[int, str]]) -> None:
    text = "".join(f"{number}{space}" for number, space in typed)
    tokens = NUMBERS.encode(text)
    assert [token.id for token in tokens] == [number for number, _ in typed] == NUMBERS.ids(text)
    assert [text[token.start : token.end] for token in tokens] == [str(n) for n, _ in typed]
    assert all(a.end < b.start for a, b in pairwise(tokens))
    assert NUMBERS.ids(NUMBERS.decode([token.id for token in tokens])) == NUMBERS.ids(text)


def test_what_is_no_number_of_a_token_is_told() -> None:
    for text in [*"a|-1|+1|1.5|1,2|5 x|٣|²|0x1|1e3|1_0|\0".split("|"), "9" * 10, "9" * 1_999]:
        with pytest.raises(TextError, match=f"^{re.escape(TYPE_IDS)}$"):
            NUMBERS.encode(text)
    for text, number in [("50", "50"), ("1 2 999999999", "999999999")]:
        with pytest.raises(TextError, match=rf"Token {number} does not exist: .* 50, from 0 on\.$"):
            NUMBERS.encode(text)
    with pytest.raises(TextError, match=r"\.$"):
        NUMBERS.encode("1 " * 1_000_000)


def test_leading_zeros_stay_in_the_label() -> None:
    (token,) = NUMBERS.encode(" 007 ")
    assert (token.id, token.label, token.start, token.end) == (7, "007", 1, 4)
    assert NUMBERS.token(7).label == NUMBERS.label(7) == "7"


def test_a_pair_is_read_behind_the_first_text() -> None:
    tokens = NUMBERS.encode("1 2", "3")
    assert [token.id for token in tokens] == [1, 2, 3] == NUMBERS.ids("1 2", "3")
    assert [token.segment for token in tokens] == [0, 0, 1]
    assert [token.second for token in tokens] == [False, False, True]
    assert (tokens[2].start, tokens[2].end) == (0, 1), "in the second text"


def test_numbers_that_are_typed_have_their_steps() -> None:
    """A folder without a tokenizer is read by the numbers themselves."""
    pieces = steps(NUMBERS, "5 17 3")[-1].pieces
    assert [(piece.id, piece.start, piece.end) for piece in pieces] == [
        (5, 0, 1), (17, 2, 4), (3, 5, 6),
    ]  # fmt: skip
