"""Taps record and edit a forward pass: the modules pass every named value to one.

A module calls `value = tap("name", value)` where the value is computed and continues with the
result. So one mechanism records (returns the same value) and edits (returns another). Nothing is
stored on the model, so one model serves many threads, with taps or without.
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
