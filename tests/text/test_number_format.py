"""Numbers in words: three digits, halves away from zero, as the browser writes them."""

import math

from explorer.text.number_format import error_of, fixed, three

HELD = (
    (0.000494, 1.1e-6, "0.00049"),
    (-0.0000194, 1.1e-6, "−0.00002"),
    (0.0000016, 1.1e-6, "0"),
    (0.0000012345, 3e-8, "1.2e−6"),
    (4.94e-7, 4e-9, "4.9e−7"),
    (1_015.4, 1.1e-6, "1,020"),
    (0.9996, 1.1e-4, "1.00"),
)
"""Numbers, by how much they may be off, and what is written of them."""
TIES = (0.3125, 0.0625, 2.5, 1.125, 12.25, 1_015.0, 2**-11, 2**-16, 0.9995117)
ROUNDED = "0.313 0.0625 2.50 1.13 12.3 1,020 0.000488 0.0000153 1.00".split()


def test_halves_are_rounded_away_from_zero() -> None:
    assert [three(value) for value in (*TIES, -0.3125)] == [*ROUNDED, "−0.313"]
    assert (fixed(0.3125, 3), fixed(-0.125, 2), fixed(-0.001, 2)) == ("0.313", "−0.13", "0.00")


def test_every_float_is_written() -> None:
    for value, text in {
        9.996e-7: "1.00e−6",
        1.2345e-7: "1.23e−7",
        999.5: "1,000",
        123_456.0: "123,000",
        0.0: "0",
        math.nan: "no value",
        -math.inf: "−∞",
        1.7976931348623157e308: f"180{',000' * 102}",
        5e-324: "4.94e−324",
    }.items():
        assert three(value) == text
    assert fixed(1e25, 4) == "10000000000000000905969664.0000"
    assert fixed(-3e38, 4) == f"−{int(3e38)}.0000"
    assert fixed(1.7976931348623157e308, 4).endswith(".0000")
    assert fixed(5e-324, 4) == "0.0000"


def test_no_digit_is_written_that_a_difference_does_not_hold() -> None:
    assert [three(value, error) for value, error, _ in HELD] == [text for *_, text in HELD]
    assert three(0.000494, error_of(8.6, -10.7) / 19.3) == "0.00049"
