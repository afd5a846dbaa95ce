"""Taps: keep a piece of what a pass shows, follow the loss back to the tokens, silence a look."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from models.tap import Tap

Cut = Callable[[Tensor], Tensor]
"""The piece of a value that is kept, such as one head of all."""


def one_head(head: int) -> Cut:
    """The map of one head (q, k); empty where the run has fewer heads."""

    def cut(weights: Tensor) -> Tensor:
        return weights[0, head] if head < weights.shape[1] else weights[0, 0, :0]

    return cut


class Pieces(Tap):
    """Keeps a piece of each value that is named, and lets go of the rest."""

    def __init__(self, cuts: Mapping[str, Cut], found: dict[str, Tensor], prefix: str = "") -> None:
        self._cuts, self._found, self._prefix = cuts, found, prefix

    def at(self, scope: str) -> Pieces:
        return Pieces(self._cuts, self._found, f"{self._prefix}{scope}.")

    def wants(self, name: str) -> bool:
        return self._prefix + name in self._cuts

    def __call__(self, name: str, value: Tensor) -> Tensor:
        if cut := self._cuts.get(self._prefix + name):
            self._found[self._prefix + name] = cut(value).clone()
        return value


class Felt(Tap):
    """Makes the embeddings leaves, so that the loss can be followed back to every token.

    `leaves` and the last streams of the stacks, `finals`, are found under their sites.
    """

    def __init__(self) -> None:
        self.leaves: dict[str, Tensor] = {}
        self.finals: dict[str, Tensor] = {}
        self._prefix = ""

    def at(self, scope: str) -> Felt:
        inner = Felt.__new__(Felt)
        inner.__dict__.update(self.__dict__)  # the same finds, a longer prefix
        inner._prefix = f"{self._prefix}{scope}."
        return inner

    def __call__(self, name: str, value: Tensor) -> Tensor:
        site = self._prefix + name
        if name == "embed":
            value = self.leaves[site] = value.detach().requires_grad_()
        elif name == "final":
            self.finals[site] = value
        return value


class Unseeing(Tap):
    """Nothing comes of looking at the source; `beyond` sees what there is."""

    def __init__(self, beyond: Tap, inside: bool = False) -> None:
        self._beyond, self._inside = beyond, inside

    def at(self, scope: str) -> Unseeing:
        return Unseeing(self._beyond.at(scope), scope == "cross_attn")

    def wants(self, name: str) -> bool:
        return self._beyond.wants(name)

    def __call__(self, name: str, value: Tensor) -> Tensor:
        if self._inside and name == "out":
            value = torch.zeros_like(value)
        return self._beyond(name, value)
