"""Combinations of settings: a few that miss nothing of interest, all with `--thorough`."""

from collections.abc import Iterable
from itertools import product

import pytest
from allpairspy import AllPairs

is_thorough = False
"""Other runs do not even make the cases that only the thorough one needs: that takes seconds."""


def grid(names: str, *axes: Iterable[object], pairs: bool = True) -> pytest.MarkDecorator:
    """Parametrize over all combinations of the axes; the quick run takes a choice of them.

    A mistake needs one or two settings to show, hardly ever three: of three or more axes
    every pair of values meets in the choice. Of two axes, and without `pairs`, every value
    is there.
    """
    values_of = [list(axis) for axis in axes]
    numbered = [range(len(values)) for values in values_of]
    if is_thorough:
        chosen = set(product(*numbered))
    elif pairs and len(numbered) > 2:
        chosen = {tuple(row) for row in AllPairs([*map(list, numbered)])}
    else:  # of two axes pairs are all there is
        longest = max(map(len, numbered))
        chosen = {tuple(i % len(axis) for axis in numbered) for i in range(longest)}
    cases = [
        pytest.param(*(values[i] for values, i in zip(values_of, at, strict=True)))
        for at in sorted(chosen)
    ]
    return pytest.mark.parametrize(names, cases)
