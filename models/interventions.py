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
        return of_head(self.head, value * self.factor, value, self.site)


@dataclass(frozen=True)
class Mean:
    """Every position gets the mean over all positions (…, t, d). With `head`, that head's alone.

    Mean ablation keeps what a part says of every text and takes away what it says of each
    token. Source: Interpretability in the Wild (Wang et al. 2022), section 2.
    """

    site: str
    head: int | None = None

    def __call__(self, value: Tensor) -> Tensor:
        if not value.is_floating_point():
            raise EditError(f"{self.site} holds no numbers that have a mean.")
        mean = value.mean(-2, keepdim=True).expand_as(value)
        return mean if self.head is None else of_head(self.head, mean, value, self.site)


@dataclass(frozen=True)
class Without:
    """Row i of the batch goes on without head `heads[i]`: many ablations in one pass (b, h, t, d).

    `mean` gives that head its mean over positions in place of zero.
    """

    site: str
    heads: tuple[int, ...]
    mean: bool = False

    def __call__(self, value: Tensor) -> Tensor:
        if value.dim() != 4 or len(value) != len(self.heads):
            shape = tuple(value.shape)
            raise EditError(f"{self.site} {shape} is no batch of {len(self.heads)} over heads.")
        for head in self.heads:
            check_index("head", head, value.shape[1], self.site)
        row, head_of = torch.arange(len(value)), torch.tensor(self.heads)
        changed = value.clone()
        changed[row, head_of] = value[row, head_of].mean(-2, keepdim=True) if self.mean else 0.0
        return changed


@dataclass(frozen=True, eq=False)
class FromOther:
    """Row i of the batch goes on with `value`, another pass's, in head `heads[i]` (b, h, t, d).

    `value` holds every head of that pass (h, t, d): many patches in one pass.
    """

    site: str
    heads: tuple[int, ...]
    value: Tensor

    def __call__(self, value: Tensor) -> Tensor:
        rows = len(self.heads)
        if value.dim() != 4 or len(value) != rows or value.shape[1:] != self.value.shape:
            ours, theirs = tuple(self.value.shape), tuple(value.shape)
            raise EditError(f"{self.site} {theirs} is no batch of {len(self.heads)} over {ours}.")
        for head in self.heads:
            check_index("head", head, value.shape[1], self.site)
        row, head_of = torch.arange(len(value)), torch.tensor(self.heads)
        changed = value.clone()
        changed[row, head_of] = self.value[head_of].to(value.dtype)
        return changed


@dataclass(frozen=True, eq=False)
class KeepCells:
    """Weights times 0 or 1, cell by cell, one pattern per row of the batch (b, h, q, k).

    Rows are not renormalised: what an edge carried is gone and nothing takes its place.
    """

    site: str
    cells: Tensor

    def __call__(self, value: Tensor) -> Tensor:
        try:
            return value * self.cells.expand_as(value)
        except RuntimeError as error:
            ours, theirs = tuple(self.cells.shape), tuple(value.shape)
            raise EditError(f"{self.site} has the shape {theirs}, not {ours}.") from error


@dataclass(frozen=True)
class SetCell:
    """One cell of a matrix (…, q, k): true or false in a `mask`, a number among `weights`.

    Weights are not renormalised. `to` None stands for the mean over the queries that look
    at this key. With `head`, that head's matrix alone.
    """

    site: str
    query: int
    key: int
    to: float | bool | None = 0.0
    head: int | None = None

    def __call__(self, value: Tensor) -> Tensor:
        check_index("query", self.query, value.shape[-2], self.site)
        check_index("key", self.key, value.shape[-1], self.site)
        if (value.dtype == torch.bool) != isinstance(self.to, bool):
            raise EditError(f"A cell of {self.site} is {value.dtype}, not {self.to!r}.")
        if self.head is not None:
            check_index("head", self.head, value.shape[1], self.site)
        changed = value.clone()
        heads = slice(None) if self.head is None else slice(self.head, self.head + 1)
        to: Tensor | float | bool = 0.0 if self.to is None else self.to
        if self.to is None:
            column = value[:, heads, :, self.key]
            to = column.sum(-1) / (column > 0).sum(-1).clamp(min=1)
        changed[:, heads, self.query, self.key] = to
        return changed


@dataclass(frozen=True)
class ForbidKey:
    """Nobody may look at one key, at a `mask` site; the softmax shares its weight out."""

    site: str
    key: int

    def __call__(self, value: Tensor) -> Tensor:
        if value.dtype != torch.bool:
            raise EditError(f"{self.site} is no mask, so no key can be forbidden there.")
        check_index("key", self.key, value.shape[-1], self.site)
        return value & (torch.arange(value.shape[-1], device=value.device) != self.key)


@dataclass(frozen=True, eq=False)
class ReplaceAt:
    """Another vector at one position (…, t, d), for example one of another text.

    With `head`, in that head alone. Source: activation patching as in Locating and Editing
    Factual Associations in GPT (Meng et al. 2022), section 2.
    """

    site: str
    position: int
    value: Tensor
    head: int | None = None

    def __call__(self, value: Tensor) -> Tensor:
        check_index("position", self.position, value.shape[-2], self.site)
        if self.value.shape != value.shape[-1:]:
            ours, theirs = tuple(self.value.shape), tuple(value.shape[-1:])
            raise EditError(f"A vector of {self.site} has the shape {theirs}, not {ours}.")
        changed = value.clone()
        changed[..., self.position, :] = self.value.to(value.dtype)
        return changed if self.head is None else of_head(self.head, changed, value, self.site)


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
class WithoutKey:
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


def of_head(head: int, changed: Tensor, value: Tensor, site: str) -> Tensor:
    """What was changed, in one head (b, h, …); the others as they were."""
    if value.dim() != 4:
        raise EditError(f"{site} is not divided into heads.")
    check_index("head", head, value.shape[1], site)
    heads = torch.arange(value.shape[1], device=value.device) == head
    return torch.where(heads[:, None, None], changed, value)


def check_index(what: str, index: int, size: int, site: str) -> None:
    if not 0 <= index < size:
        raise EditError(f"{site} has no {what} {index}: there are {size}.")
