"""Edits of a pass: plain frozen data naming a site and what becomes of its value.

Give them to `trace(…, edits=…)`. `site` may be a pattern (`decoder.*.self_attn.weights`).
A pass in which an edit found no site, or a value it does not fit, ends in an EditError.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor


class EditError(ValueError):
    """An edit that could not be made, in one sentence."""


@runtime_checkable
class Edit(Protocol):
    """What every edit is: a site, and a function from its value to another of the same shape."""

    @property
    def site(self) -> str: ...

    def __call__(self, value: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class Scale:
    """The value times a factor; 0 ablates it. With `head`, that head's part alone (b, h, …)."""

    site: str
    factor: float = 0.0
    head: int | None = None

    def __call__(self, value: Tensor) -> Tensor:
        if self.head is None:
            return value * self.factor
        if value.dim() != 4:
            raise EditError(f"{self.site} is not divided into heads.")
        check_index("head", self.head, value.shape[1], self.site)
        heads = torch.arange(value.shape[1], device=value.device) == self.head
        return torch.where(heads[:, None, None], value * self.factor, value)


@dataclass(frozen=True, eq=False)
class Replace:
    """Another value in place of the site's, for example one recorded in another pass."""

    site: str
    value: Tensor

    def __call__(self, value: Tensor) -> Tensor:
        try:
            return self.value.to(value.dtype).expand_as(value)
        except RuntimeError as error:
            ours, theirs = tuple(self.value.shape), tuple(value.shape)
            raise EditError(f"{self.site} has the shape {theirs}, not {ours}.") from error


@dataclass(frozen=True)
class SetMask:
    """Who may look at whom, one row of booleans per query, at a `mask` site."""

    site: str
    allowed: tuple[tuple[bool, ...], ...]

    def __call__(self, value: Tensor) -> Tensor:
        if len({len(row) for row in self.allowed}) > 1:
            raise EditError(f"The rows of the mask for {self.site} are not equally long.")
        allowed = torch.tensor(self.allowed, dtype=torch.bool, device=value.device)
        if allowed.shape != value.shape[-2:]:
            ours, theirs = tuple(allowed.shape), tuple(value.shape[-2:])
            raise EditError(f"{self.site} covers {theirs} queries and keys, not {ours}.")
        return allowed.expand(*value.shape[:-2], *allowed.shape)


@dataclass(frozen=True)
class HideKey:
    """Nobody looks at one key: at a `weights` site its column is zero and rows are renormalised.

    A row that looked at nothing else becomes all zeros.
    """

    site: str
    key: int

    def __call__(self, value: Tensor) -> Tensor:
        if not value.is_floating_point():
            raise EditError(f"{self.site} holds no weights, so no key can be hidden there.")
        check_index("key", self.key, value.shape[-1], self.site)
        hidden = torch.arange(value.shape[-1], device=value.device) == self.key
        left = value.masked_fill(hidden, 0.0)
        mass = left.sum(-1, keepdim=True)
        return torch.where(mass > 0, left / mass.clamp(min=torch.finfo(value.dtype).tiny), left)


def check_index(what: str, index: int, size: int, site: str) -> None:
    if not 0 <= index < size:
        raise EditError(f"{site} has no {what} {index}: there are {size}.")
