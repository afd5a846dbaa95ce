"""Combinations of settings: a few in which every pair of values meets, all with `--thorough`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest
from allpairspy import AllPairs


def grid(names: str, *axes: Sequence[object]) -> pytest.MarkDecorator:
    """Parametrize over all combinations of the axes; the quick run takes a pairwise choice.

    A mistake needs one or two settings to show, hardly ever three: the choice holds every
    pair of values of two axes at least once, and grows with the two longest axes only.
    """
    numbered = [list(range(len(axis))) for axis in axes]
    quick = {tuple(row) for row in AllPairs(numbered)} if len(axes) > 1 else set(product(*numbered))
    cases = []
    for at in product(*numbered):
        values = [axis[i] for axis, i in zip(axes, at, strict=True)]
        cases.append(pytest.param(*values, marks=[] if at in quick else pytest.mark.thorough))
    return pytest.mark.parametrize(names, cases)
