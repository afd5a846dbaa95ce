"""Two ways of doing one thing, timed by turns in one process."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Ratio:
    """Medians over the rounds: seconds of both sides, and first ÷ second of each round."""

    first: float
    second: float
    times: float

    def __str__(self) -> str:
        return f"{self.times:.2f} ×"


FEWEST, ENOUGH = 3, 20.0
"""Work that takes long is its own average: after so many rounds and seconds it is measured."""


def ratio(first: Callable[[], object], second: Callable[[], object], rounds: int = 7) -> Ratio:
    """Time both, the order turned around every round, after one round that does not count.

    So many rounds, or as few as `FEWEST` where they take more than `ENOUGH` seconds.

    Time is the processor's: a neighbour on a busy machine does not count. So both must
    keep to threads of their own process, as many on one side as on the other.
    """
    pairs: list[tuple[float, float]] = []
    for turn in range(rounds + 1):
        if turn > FEWEST and sum(map(sum, pairs)) > ENOUGH:
            break
        sides = [first, second] if turn % 2 else [second, first]
        spent = {id(side): seconds_of(side) for side in sides}
        pairs.append((spent[id(first)], spent[id(second)]))
    counted = pairs[1:]
    return Ratio(
        median(mine for mine, _ in counted),
        median(theirs for _, theirs in counted),
        median(mine / theirs for mine, theirs in counted),
    )


def seconds_of(work: Callable[[], object]) -> float:
    gc.collect()
    begun = time.process_time()
    work()
    return time.process_time() - begun
