"""What an address asks for: which texts are whole numbers."""

from __future__ import annotations

import pytest

from explorer.asked import whole


def test_digits_are_a_number(subtests: pytest.Subtests) -> None:
    for text, number in [("0", 0), ("01", 1), ("7", 7), ("9" * 9, 10**9 - 1)]:
        with subtests.test(text=text):
            assert whole(text) == number


def test_anything_else_is_none(subtests: pytest.Subtests) -> None:
    for text in ["", "-1", "x", "1.0", " 1", "1_0", "²", "9" * 5000, None]:
        with subtests.test(text=text):
            assert whole(text) is None


def test_what_is_not_below_the_count_is_none() -> None:
    assert whole("2", 3) == 2
    assert whole("3", 3) is None
