"""Parts of a page that show runs: drawn by a clock while one trains, and with the page after."""

import time
from collections.abc import Callable, Hashable, Sequence
from functools import wraps
from typing import ParamSpec

from explorer.components.fragment import SELDOM, fragment, watch
from explorer.runs.cluster import states_of
from explorer.runs.run import Run
from explorer.runs.spec import TRAINING, WAITING

P = ParamSpec("P")
EVERY = 1.0
"""Seconds between two drawings."""
NEW = 10.0
"""Seconds for which a run is looked at as often after its last change as one that trains."""


def draw_followed(
    draw: Callable[P, None],
    runs: Sequence[Run],
    every: float,
    more: Callable[[], Hashable] = lambda: None,
) -> Callable[P, None]:
    """A part that draws these runs, by a clock while one trains; the page follows their states."""

    def follows() -> Hashable:
        return states_of(runs), more()

    @wraps(draw)
    def draw_part(*args: P.args, **kwargs: P.kwargs) -> None:
        states = states_of(runs)
        trains = TRAINING in states
        fragment(every=every if trains else None, follows=follows)(draw)(*args, **kwargs)
        if WAITING in states and not trains:
            watch(follows, EVERY if any(map(is_new, runs)) else SELDOM)

    return draw_part


def is_new(run: Run) -> bool:
    """Whether something was just asked of the run, so that it is likely to change."""
    try:
        age = time.time() - (run.folder / "status.json").stat().st_mtime
    except OSError:
        return False
    return 0 <= age < NEW
