"""Edits of a batch: a different one in each row, so that one pass tries many.

Shapes: b batch, h heads, t tokens, q queries, k keys, d width of a vector.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from models.interventions import EditError, check_index, fit


@dataclass(frozen=True)
class AblateHeads:
    """Head `heads[i]` is ablated in row i of the batch (b, h, t, d): many ablations in one pass."""

    site: str
    heads: tuple[int, ...]

    def __call__(self, value: Tensor) -> Tensor:
        if value.dim() != 4 or len(value) != len(self.heads):
            shape = tuple(value.shape)
            raise EditError(f"{self.site} {shape} is not a batch of {len(self.heads)} over heads.")
        changed = value.clone()
        changed[_row_by_row(self.heads, value, self.site)] = 0.0
        return changed


@dataclass(frozen=True, eq=False)
class PatchHeads:
    """Head `heads[i]` is patched in row i of the batch (b, h, t, d): many patches in one pass.

    `value` (h, t, d) has every head of the forward pass that the patches come from.
    """

    site: str
    heads: tuple[int, ...]
    value: Tensor

    def __call__(self, value: Tensor) -> Tensor:
        rows = len(self.heads)
        if value.dim() != 4 or len(value) != rows or value.shape[1:] != self.value.shape:
            ours, theirs = tuple(self.value.shape), tuple(value.shape)
            raise EditError(f"{self.site} {theirs} is not a batch of {rows} over {ours}.")
        at = _row_by_row(self.heads, value, self.site)
        changed = value.clone()
        changed[at] = self.value.to(value)[at[1]]
        return changed


@dataclass(frozen=True, eq=False)
class AddByRow:
    """`values[i]` (t, d) is added in row i of the batch: many changes in one pass.

    With `heads`, to head `heads[i]` alone (b, h, t, d).
    """

    site: str
    values: Tensor
    heads: tuple[int, ...] | None = None

    def __call__(self, value: Tensor) -> Tensor:
        inner, rows = value.shape[-2:], len(self.values)
        if len(value) != rows or self.values.shape[1:] != inner:
            ours, theirs = tuple(value.shape), tuple(self.values.shape)
            raise EditError(f"{theirs} cannot be added to {self.site} {ours}.")
        if self.heads is None and value.dim() == 3:
            return value + self.values.to(value)
        if self.heads is None:
            raise EditError(f"{self.site} is divided into heads: name the head of each row.")
        if value.dim() != 4:
            raise EditError(f"{self.site} is not divided into heads.")
        if len(self.heads) != rows:
            raise EditError(f"{self.site} has {rows} rows, not {len(self.heads)}.")
        changed = value.clone()
        changed[_row_by_row(self.heads, value, self.site)] += self.values.to(value)
        return changed


@dataclass(frozen=True, eq=False)
class KeepCells:
    """Weights times 0 or 1, cell by cell, one pattern per row of the batch (b, h, q, k).

    Rows are not renormalised.
    """

    site: str
    cells: Tensor

    def __call__(self, value: Tensor) -> Tensor:
        return value * fit(self.cells, value, self.site)


def _row_by_row(heads: tuple[int, ...], value: Tensor, site: str) -> tuple[Tensor, Tensor]:
    """The index of head `heads[i]` in row i of the batch."""
    for head in heads:
        check_index("head", head, value.shape[1], site)
    return torch.arange(len(heads), device=value.device), torch.tensor(heads, device=value.device)
