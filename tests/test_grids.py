"""A pairwise choice of a grid misses no pair, and the thorough run misses nothing."""

from itertools import combinations, product

import pytest

from tests import grids

AXES = (["encoder", "decoder", "both"], ["sine", "rotary", "alibi", "none"], [True, False], "abc")


def cases(monkeypatch: pytest.MonkeyPatch, *, is_thorough: bool) -> set[tuple[object, ...]]:
    monkeypatch.setattr(grids, "is_thorough", is_thorough)
    return {case.values for case in grids.grid("kind, positions, bias, letter", *AXES).args[1]}


def test_every_pair_of_values_meets_in_the_quick_run_and_all_in_the_thorough_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert (every := cases(monkeypatch, is_thorough=True)) == set(product(*AXES))
    quick = cases(monkeypatch, is_thorough=False)
    assert len(quick) < len(every) / 4
    for i, j in combinations(range(len(AXES)), 2):
        assert {(case[i], case[j]) for case in quick} == set(product(AXES[i], AXES[j]))
