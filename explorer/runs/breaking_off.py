"""Break a training off within a step or a measurement, not only between two of them.

A worker works for a `Breakable` (`cooperative.run_in_thread`): each cooperative step asks whether
the training must end now, and the work up to there is thrown away. The model and its state are
those of the last whole update.
"""

from collections.abc import Callable


class BrokenOff(Exception):
    """The work must end here; the run then has this state."""

    def __init__(self, state: str) -> None:
        super().__init__(state)
        self.state = state


class Breakable:
    """Ends the work of its thread at the next step, once `ending` gives a state."""

    def __init__(self, ending: Callable[[], str | None]) -> None:
        self._ending = ending

    def step(self) -> None:
        """BrokenOff if the work must end."""
        if state := self._ending():
            raise BrokenOff(state)

    check_cancelled = step

    def release_slot(self) -> None:
        """A worker has no turns to give up."""

    take_slot = release_slot
