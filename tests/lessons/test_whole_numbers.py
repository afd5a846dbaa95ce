"""The walks of lessons and tutorials find a number only as a whole one."""

import pytest

from tests.whole_numbers import stands_in


@pytest.mark.parametrize(
    ("text", "page", "found"),
    [
        ("0.64", "0.64", True),
        ("0.64", "it is 0.64.", True),
        ("0.64", "0.643 (0.64)", True),
        ("0.64", "0.643", False),
        ("0.64", "10.64", False),
        ("12", "1.12", False),
        ("12", "3,12", False),
        ("12", "12.5", False),
        ("12", "12,500", False),
        ("12", "1, 12, 3", True),
        ("−1.34", "−1.34", True),
        ("rank 1", "rank 148", False),
        ("rank 1", "rank 1, of 9", True),
        ("head 0", "Layer 0, head 0", True),
    ],
)
def test_a_number_is_found_as_a_whole_one(text: str, page: str, found: bool) -> None:
    assert stands_in(text, page) is found
