"""What a browser tells of a view is taken only where it can be true."""

from __future__ import annotations

import pytest

from explorer.components import told


@pytest.mark.parametrize(
    ("sent", "taken"),
    [(2, 2), (0, 0), (3, None), (-1, None), ("1", None), (True, None), (1.0, None), (None, None)],
)
def test_one_of_so_many(sent: object, taken: int | None) -> None:
    assert told.place(sent, 3) == taken


@pytest.mark.parametrize(
    "sent", [None, "no", [], [1], [1, 2, 3], [-1, 0], [0, 9], [0.5, 1], [True, 1], {"a": 1}]
)
def test_nonsense_is_no_cell(sent: object) -> None:
    assert told.cell(sent, 2, 4) is None
    assert told.on_a_side(sent, 2, 4) is None


def test_a_cell_and_a_token_on_a_side() -> None:
    assert told.cell([1, 3], 2, 4) == (1, 3)
    assert told.on_a_side([0, 1], 2, 4) == (0, 1)
    assert told.on_a_side([0, 2], 2, 4) is None, "there are two rows"
    assert told.on_a_side([1, 3], 2, 4) == (1, 3)
    assert told.on_a_side([2, 0], 9, 9) is None, "there are two sides"
