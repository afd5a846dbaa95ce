"""Combinations of settings: a few that miss nothing of interest, all with `--thorough`."""

from collections.abc import Iterable
from itertools import product

import pytest
from allpairspy import AllPairs

is_thorough = False
"""Whether what only the thorough run needs is made at all, which takes seconds."""


def grid(names: str, *axes: Iterable[object], pairs: bool = True) -> pytest.MarkDecorator:
    """Parametrize over all combinations of the axes; the quick run takes a choice of them.

    A mistake needs one or two settings to show, hardly ever three: of three or more axes
    every pair of values meets in the choice. Of two axes, and without `pairs`, every value
    is there.
    """
    values_of = [list(axis) for axis in axes]
    numbered = [list(range(len(values))) for values in values_of]
    if pairs and len(numbered) > 2:
        quick = {tuple(row) for row in AllPairs(numbered)}
    else:  # of two axes pairs are all there is
        longest = max(map(len, numbered))
        quick = {tuple(i % len(axis) for axis in numbered) for i in range(longest)}
    cases = []
    for at in product(*numbered):
        if at in quick or is_thorough:
            values = [values[i] for values, i in zip(values_of, at, strict=True)]
            cases.append(pytest.param(*values, marks=[] if at in quick else pytest.mark.thorough))
    return pytest.mark.parametrize(names, cases)
