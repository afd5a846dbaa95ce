"""Taps record and edit a forward pass: the modules show every named value to one.

A module calls `value = tap("name", value)` where the value is made and goes on
with what comes back. So one mechanism records (returns the same value) and edits
(returns another). Nothing is stored on the model, so one model serves many
threads, some watching and some not.
"""

from torch import Tensor


class Tap:
    """A tap that records nothing and edits nothing; the base of those that do."""

    def wants(self, name: str) -> bool:
        """Whether `name` is recorded or edited; otherwise it need not be computed."""
        return False

    def __call__(self, name: str, value: Tensor) -> Tensor:
        return value

    def at(self, scope: str) -> "Tap":
        """The tap of a part of the model: its names get `scope.` in front."""
        return self


NO_TAP = Tap()
