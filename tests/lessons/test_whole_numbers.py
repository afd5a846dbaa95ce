"""The walks of lessons and tutorials find a number only as a whole one."""

from tests.whole_numbers import stands_in

WHOLE = {
    "0.64": ("0.64", "it is 0.64.", "0.643 (0.64)"),
    "12": ("1, 12, 3",),
    "−1.34": ("−1.34",),
    "rank 1": ("rank 1, of 9",),
    "head 0": ("Layer 0, head 0",),
}
PART = {
    "0.64": ("0.643", "10.64"),
    "12": ("1.12", "3,12", "12.5", "12,500"),
    "rank 1": ("rank 148",),
}


def test_a_number_is_found_as_a_whole_one() -> None:
    for table, is_there in ((WHOLE, True), (PART, False)):
        for text, pages in table.items():
            assert {stands_in(text, page) for page in pages} == {is_there}, text
