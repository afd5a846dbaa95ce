"""Rules applied to many words at once, in time that grows with the words and the rules."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Rule = tuple[int, int, int]
"""The numbers of two neighbours and of the token that they become."""

Units = NDArray[np.uint32]
"""Tokens of words in a row: token n is n + 1, and a 0 follows every word."""


def merged(units: Units, rules: Iterable[Rule], size: int) -> Units:
    """The same words after these rules, each applied from the left, as the library does.

    `size` is above every unit. A token that is merged goes into the place of its left half,
    and every place knows the next that is left, so that a rule touches only where it applies.
    """
    width = np.min_scalar_type(size * size).type
    unit, last = units.astype(width), len(units) - 1
    before, after = np.arange(-1, last), np.arange(1, last + 2)
    code = unit * width(size)  # of a pair, where its left half stands
    code[:-1] += unit[1:]
    is_left = np.ones(len(units), dtype=bool)
    for left, right, new in rules:
        at = np.flatnonzero(code == width((left + 1) * size + right + 1))
        if not len(at):  # most rules find nothing in a short text
            continue
        if left == right:
            at = _every_other(at, after)
        gone = after[at]
        unit[at], is_left[gone], code[gone] = new + 1, False, 0
        after[at] = after[gone]
        before[after[at]] = at
        code[at] = unit[at] * width(size) + unit[after[at]]
        front = before[at]
        code[front] = unit[front] * width(size) + unit[at]
    return unit[is_left].astype(np.uint32)


def _every_other(at: NDArray[np.intp], after: NDArray[np.intp]) -> NDArray[np.intp]:
    """Of pairs that share a token the first, the third and so on: aaaaa is aa aa a."""
    order = np.arange(len(at))
    goes_on = np.append(False, after[at[:-1]] == at[1:])[: len(at)]
    begun = np.maximum.accumulate(np.where(goes_on, 0, order))
    return at[(order - begun) % 2 == 0]
