"""Two ways to interfere with a pass: follow the loss back to the tokens, or silence a look."""

from __future__ import annotations

import torch
from torch import Tensor

from models.tap import Tap


class Felt(Tap):
    """Makes the embeddings leaves, so that the loss can be followed back to every token."""

    def __init__(self, found: dict[str, Tensor], prefix: str = "") -> None:
        self._found, self._prefix = found, prefix

    def at(self, scope: str) -> Felt:
        return Felt(self._found, f"{self._prefix}{scope}.")

    def __call__(self, name: str, value: Tensor) -> Tensor:
        if name != "embed":
            return value
        leaf = value.detach().requires_grad_()
        self._found[self._prefix + name] = leaf
        return leaf


class Unseeing(Tap):
    """Nothing comes of looking at the source."""

    def __init__(self, inside: bool = False) -> None:
        self._inside = inside

    def at(self, scope: str) -> Unseeing:
        return Unseeing(scope == "cross_attn")

    def __call__(self, name: str, value: Tensor) -> Tensor:
        return torch.zeros_like(value) if self._inside and name == "out" else value
