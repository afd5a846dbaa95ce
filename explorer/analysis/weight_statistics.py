"""The numbers of a tensor: what they add up to, their norms by layer, a picture of them.

Everything goes through a tensor in slices, so that an embedding of a vocabulary of
250,000 needs no second copy of itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

SLICE = 1 << 20
"""Numbers that are looked at together."""
MOST_CELLS = 128
"""Cells along one side of a picture."""
VECTOR_WIDTH = 32
"""A vector is shown in rows of this many cells, and in at most as many rows."""
KINDS = ("matrix", "gain", "bias")
IN_A_LAYER = re.compile(r"(?P<stack>\w+)\.blocks\.(?P<layer>\d+)\.(?P<part>.+)")


@dataclass(frozen=True)
class Summary:
    """One tensor in numbers. What is not finite is counted and left out of the rest.

    `std` is that of the numbers themselves (divisor n), `norm` the root of the sum of
    their squares, `rms` the root of its mean.
    """

    name: str
    shape: tuple[int, ...]
    mean: float
    std: float
    rms: float
    norm: float
    lowest: float
    highest: float
    zeros: int
    not_finite: int

    @property
    def kind(self) -> str:
        """One of KINDS: what the tensor is for, by its shape and its name."""
        if len(self.shape) > 1:
            return "matrix"
        return "bias" if self.name.endswith("bias") else "gain"

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    @property
    def largest(self) -> float:
        """The largest size, whatever the sign."""
        return max(abs(self.lowest), abs(self.highest))

    @property
    def share_of_zeros(self) -> float:
        return self.zeros / self.count if self.count else 0.0

    @property
    def is_constant(self) -> bool:
        return self.lowest == self.highest and self.not_finite == 0


def summary(name: str, tensor: Tensor) -> Summary:
    """The numbers of one tensor, added up in double precision."""
    total = squares = 0.0
    lowest, highest = math.inf, -math.inf
    zeros = finite = 0
    for numbers in _slices(tensor):
        known = numbers[torch.isfinite(numbers)]
        if known.numel() == 0:
            continue
        total += known.sum(dtype=torch.float64).item()
        squares += torch.linalg.vector_norm(known, dtype=torch.float64).item() ** 2
        low, high = torch.aminmax(known)
        lowest, highest = min(lowest, low.item()), max(highest, high.item())
        zeros += int((known == 0).sum())
        finite += known.numel()
    shape, bad = tuple(tensor.shape), tensor.numel() - finite
    if not finite:
        return Summary(name, shape, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, bad)
    mean, power = total / finite, squares / finite
    std = 0.0 if lowest == highest else math.sqrt(max(0.0, power - mean * mean))
    norm, rms = math.sqrt(squares), math.sqrt(power)
    return Summary(name, shape, mean, std, rms, norm, lowest, highest, zeros, bad)


def survey(model: nn.Module) -> Iterator[Summary]:
    """Every parameter of a model, one after another; a tied one is met once."""
    for name, parameter in model.named_parameters():
        yield summary(name, parameter)


def _slices(tensor: Tensor) -> Iterator[Tensor]:
    for numbers in tensor.detach().reshape(-1).split(SLICE):
        yield numbers.float() if numbers.dtype in (torch.float16, torch.bfloat16) else numbers


@dataclass(frozen=True, eq=False)
class Norms:
    """The root mean square of every part of every layer of one stack.

    `values` is (layers, parts); NaN where a layer has no such part.
    """

    stack: str
    parts: tuple[str, ...]
    values: Tensor


def by_layer(found: Iterable[Summary], kind: str) -> list[Norms]:
    """Tables of the tensors of a kind that stand inside layers; one for each stack."""
    tables: dict[str, dict[tuple[int, str], float]] = {}
    for one in found:
        place = IN_A_LAYER.fullmatch(one.name)
        if place and one.kind == kind:
            at = int(place["layer"]), place["part"]
            tables.setdefault(place["stack"], {})[at] = one.rms
    return [_table(stack, cells) for stack, cells in tables.items()]


def _table(stack: str, cells: dict[tuple[int, str], float]) -> Norms:
    parts = tuple(dict.fromkeys(part for _, part in cells))
    layers = 1 + max(layer for layer, _ in cells)
    values = torch.full((layers, len(parts)), math.nan, dtype=torch.float64)
    for (layer, part), rms in cells.items():
        values[layer, parts.index(part)] = rms
    return Norms(stack, parts, values)


@dataclass(frozen=True, eq=False)
class Picture:
    """A tensor in at most 128 × 128 cells, each standing for a block of numbers.

    `values` is NaN where a block holds something that is no number, and behind the
    end of a vector, which is shown in rows like a text.
    """

    values: Tensor
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    block: tuple[int, ...]
    how: str
    is_ragged: bool

    @property
    def sentence(self) -> str:
        """What one cell stands for."""
        if math.prod(self.block) == 1:
            said = "Each cell is one weight" if self.how == "mean" else "Each cell is one |weight|"
        else:
            size = " × ".join(f"{width:,}" for width in self.block)
            what = "mean" if self.how == "mean" else "largest size |w|"
            said = f"Each cell is the {what} of {size} weights"
        ragged = ", of fewer at the lower and right edge" if self.is_ragged else ""
        return said + (f"{ragged}." if len(self.block) > 1 else ", read row by row.")


def picture(tensor: Tensor, how: str = "mean", most: int = MOST_CELLS) -> Picture:
    """A matrix, or a vector in rows, as cells that hold the mean or the largest size."""
    if how not in ("mean", "largest"):
        raise ValueError(f"a cell is the mean or the largest, not {how!r}")
    tensor = tensor.detach()
    if tensor.dim() < 2:
        return _of_vector(tensor.reshape(-1), how)
    matrix = tensor.reshape(tensor.shape[0], -1)
    height, width = matrix.shape
    down, across = max(1, -(-height // most)), max(1, -(-width // most))
    rows = [_pooled_row(part, across, how) for part in matrix.split(down)]
    is_ragged = height % down > 0 or width % across > 0
    values = torch.stack(rows) if rows else torch.empty(0, 0)
    return Picture(
        values, _spans(height, down), _spans(width, across), (down, across), how, is_ragged
    )


def _of_vector(vector: Tensor, how: str) -> Picture:
    """Neighbours are pooled first, so a row of cells is a run of the vector."""
    count = len(vector)
    size = max(1, -(-count // VECTOR_WIDTH**2))
    cells = _pooled_row(vector[None], size, how)
    width = max(1, min(VECTOR_WIDTH, len(cells)))
    height = -(-len(cells) // width)
    values = cells.new_full((height * width,), math.nan)
    values[: len(cells)] = cells
    starts = _spans(count, size * width)
    columns = tuple(f"+{at * size}" for at in range(width))
    return Picture(values.view(height, width), starts, columns, (size,), how, count % size > 0)


def _pooled_row(part: Tensor, across: int, how: str) -> Tensor:
    """One row of cells: `part` is as many rows of numbers as a cell is high."""
    height, width = part.shape
    cells = -(-width // across)
    filled = part.new_zeros(height, cells * across, dtype=torch.float32)
    filled[:, :width] = part if how == "mean" else part.abs()
    blocks = filled.view(height, cells, across)
    if how == "largest":
        return blocks.amax((0, 2))
    counts = torch.full((cells,), float(height * across), dtype=torch.float64)
    if cells:
        counts[-1] = height * (width - (cells - 1) * across)
    return (blocks.sum((0, 2), dtype=torch.float64) / counts).float()


def _spans(count: int, size: int) -> tuple[str, ...]:
    """What each block covers: "7", or "12–17" where it is more than one."""
    ends = [(start, min(start + size, count) - 1) for start in range(0, count, size)]
    return tuple(str(first) if first == last else f"{first}–{last}" for first, last in ends)
