"""Layouts: how a tensor of a published file holds weights of ours, split and joined.

Splitting works on tensors without memory too, so shapes are compared by the very
operations that later move the numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True)
class Same:
    """The same tensor under another name; the base of those that are rearranged.

    `ours` are the names it holds, in their order.
    """

    ours: tuple[str, ...]

    def of(self, ours: tuple[str, ...]) -> "Same":
        """The same layout of other tensors."""
        return replace(self, ours=ours)

    def split(self, theirs: Tensor, ours: Sequence[Tensor]) -> list[Tensor]:
        """Our tensors, from theirs; `ours` gives the shapes. RuntimeError when they do not fit."""
        return [theirs]

    def join(self, ours: Sequence[Tensor]) -> Tensor:
        """Their tensor, from ours."""
        return ours[0]


class Rows(Same):
    """Several of ours below one another (Phi-3's `qkv_proj`)."""

    def split(self, theirs: Tensor, ours: Sequence[Tensor]) -> list[Tensor]:
        return list(theirs.split([len(tensor) for tensor in ours]))

    def join(self, ours: Sequence[Tensor]) -> Tensor:
        return torch.cat(list(ours))


class Columns(Rows):
    """Several of ours side by side, input × output instead of output × input (GPT-2)."""

    def split(self, theirs: Tensor, ours: Sequence[Tensor]) -> list[Tensor]:
        return super().split(theirs.T if theirs.dim() == 2 else theirs, ours)

    def join(self, ours: Sequence[Tensor]) -> Tensor:
        joined = super().join(ours)
        return joined.T.contiguous() if joined.dim() == 2 else joined


@dataclass(frozen=True)
class HeadByHead(Same):
    """Queries, keys and values of one head together, then those of the next (GPT-NeoX)."""

    n_heads: int

    def split(self, theirs: Tensor, ours: Sequence[Tensor]) -> list[Tensor]:
        by_head = theirs.unflatten(0, (self.n_heads, len(ours), -1))
        return [by_head[:, i].flatten(0, 1) for i in range(len(ours))]

    def join(self, ours: Sequence[Tensor]) -> Tensor:
        by_head = [tensor.unflatten(0, (self.n_heads, -1)) for tensor in ours]
        return torch.stack(by_head, 1).flatten(0, 2)


@dataclass(frozen=True)
class Interleaved(Same):
    """Rows of a head that are turned together lie side by side, not half a head apart (GGUF)."""

    n_heads: int

    def split(self, theirs: Tensor, ours: Sequence[Tensor]) -> list[Tensor]:
        return [theirs.unflatten(0, (self.n_heads, -1, 2)).transpose(1, 2).flatten(0, 2)]

    def join(self, ours: Sequence[Tensor]) -> Tensor:
        return ours[0].unflatten(0, (self.n_heads, 2, -1)).transpose(1, 2).flatten(0, 2)


class MinusOne(Same):
    """Gains that are stored as their difference from one (Gemma)."""

    def split(self, theirs: Tensor, ours: Sequence[Tensor]) -> list[Tensor]:
        return [theirs.float() + 1]

    def join(self, ours: Sequence[Tensor]) -> Tensor:
        return ours[0] - 1


class SingleRow(Same):
    """A vector stored as a matrix of one row (Marian's bias of the logits)."""

    def split(self, theirs: Tensor, ours: Sequence[Tensor]) -> list[Tensor]:
        return [theirs.squeeze(0)]

    def join(self, ours: Sequence[Tensor]) -> Tensor:
        return ours[0][None]
