"""A pairwise choice of a grid misses no pair, and the thorough run misses nothing."""

from itertools import combinations, product

import pytest

from tests import grids
from tests.grids import grid

AXES = (["encoder", "decoder", "both"], ["sine", "rotary", "alibi", "none"], [True, False], "abc")


@pytest.mark.parametrize("is_thorough", [False, True])
def test_every_pair_of_values_meets_in_the_quick_run_and_all_in_the_thorough_one(
    is_thorough: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grids, "is_thorough", is_thorough)
    cases = grid("kind, positions, bias, letter", *AXES).args[1]
    every = set(product(*AXES))
    quick = [case.values for case in cases if not case.marks]
    assert len(quick) < len(every) / 4
    assert {case.values for case in cases} == (every if is_thorough else set(quick))
    for i, j in combinations(range(len(AXES)), 2):
        assert {(case[i], case[j]) for case in quick} == set(product(AXES[i], AXES[j]))
