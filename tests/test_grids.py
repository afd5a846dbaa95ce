"""A pairwise choice of a grid misses no pair, and the thorough run misses nothing."""

from itertools import combinations, product

from tests.grids import grid

AXES = (["encoder", "decoder", "both"], ["sine", "rotary", "alibi", "none"], [True, False], "abc")


def test_every_pair_of_values_meets_in_the_quick_run_and_all_in_the_thorough_one() -> None:
    cases = grid("kind, positions, bias, letter", *AXES).args[1]
    assert {case.values for case in cases} == set(product(*AXES))
    quick = [case.values for case in cases if not case.marks]
    assert len(quick) < len(cases) / 4
    for i, j in combinations(range(len(AXES)), 2):
        assert {(case[i], case[j]) for case in quick} == set(product(AXES[i], AXES[j]))
