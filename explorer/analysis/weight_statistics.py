"""Statistics of weights: of one tensor, of every layer, and a tensor pooled to a picture.

They read a tensor in slices, so that an embedding of 250,000 tokens needs no second copy.
"""

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, max_pool2d

from explorer.system.cooperative import interruptible

SLICE = 1 << 20
"""Weights in one slice."""
MOST_CELLS = 128
"""The most cells along one side of a picture."""
VECTOR_WIDTH = 32
"""The cells in a row of a vector's picture, and its most rows."""
WEIGHT_KINDS = ("matrix", "gain", "bias")
IN_A_LAYER = re.compile(r"(?P<stack>\w+)\.blocks\.(?P<layer>\d+)\.(?P<part>.+)")


@dataclass(frozen=True)
class TensorSummary:
    """Statistics of one tensor, over its finite numbers; the others are only counted.

    `std` has the divisor n, `norm` is the root of the sum of squares, `rms` that of their mean.
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
        """One of WEIGHT_KINDS, by the shape and the name."""
        if len(self.shape) > 1:
            return "matrix"
        return "bias" if self.name.endswith("bias") else "gain"

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    @property
    def largest(self) -> float:
        return max(abs(self.lowest), abs(self.highest))

    @property
    def share_of_zeros(self) -> float:
        return self.zeros / self.count if self.count else 0.0

    @property
    def is_constant(self) -> bool:
        return self.lowest == self.highest and self.not_finite == 0


def tensor_summary(name: str, tensor: Tensor) -> TensorSummary:
    """The statistics of one tensor, summed in float64."""
    total = squares = 0.0
    lowest, highest = math.inf, -math.inf
    zeros = finite = 0
    for numbers in interruptible(tensor.detach().reshape(-1).split(SLICE)):
        if numbers.dtype in (torch.float16, torch.bfloat16):
            numbers = numbers.float()
        finite_numbers = numbers[torch.isfinite(numbers)]
        if finite_numbers.numel() == 0:
            continue
        total += finite_numbers.sum(dtype=torch.float64).item()
        squares += torch.linalg.vector_norm(finite_numbers, dtype=torch.float64).item() ** 2
        low, high = torch.aminmax(finite_numbers)
        lowest, highest = min(lowest, low.item()), max(highest, high.item())
        zeros += int((finite_numbers == 0).sum())
        finite += finite_numbers.numel()
    shape, bad = tuple(tensor.shape), tensor.numel() - finite
    if not finite:
        return TensorSummary(name, shape, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, bad)
    mean, power = total / finite, squares / finite
    std = 0.0 if lowest == highest else math.sqrt(max(0.0, power - mean * mean))
    norm, rms = math.sqrt(squares), math.sqrt(power)
    return TensorSummary(name, shape, mean, std, rms, norm, lowest, highest, zeros, bad)


def summarized(model: nn.Module) -> Iterator[TensorSummary]:
    """The statistics of every parameter; a tied one appears once."""
    yield from (tensor_summary(name, parameter) for name, parameter in model.named_parameters())


@dataclass(frozen=True, eq=False)
class LayerNorms:
    """The root mean square of every part of every layer of one stack.

    `values` is (layers, parts); NaN where a layer has no such part.
    """

    stack: str
    parts: tuple[str, ...]
    values: Tensor


def by_layer(tensors: Iterable[TensorSummary], kind: str) -> list[LayerNorms]:
    """The tensors of one kind inside layers, a table for each stack."""
    tables: dict[str, dict[tuple[int, str], float]] = {}
    for tensor in tensors:
        place = IN_A_LAYER.fullmatch(tensor.name)
        if place and tensor.kind == kind:
            at = int(place["layer"]), place["part"]
            tables.setdefault(place["stack"], {})[at] = tensor.rms
    norms = []
    for stack, cells in tables.items():
        parts = tuple(dict.fromkeys(part for _, part in cells))
        layers = 1 + max(layer for layer, _ in cells)
        values = torch.full((layers, len(parts)), math.nan, dtype=torch.float64)
        for (layer, part), rms in cells.items():
            values[layer, parts.index(part)] = rms
        norms.append(LayerNorms(stack, parts, values))
    return norms


@dataclass(frozen=True, eq=False)
class PooledTensor:
    """A tensor in at most 128 × 128 cells, each of which stands for a block of numbers.

    `values` is NaN where a block is not finite. A vector is drawn in rows like a text: only the
    first `cells` are its own, the others are NaN.
    """

    values: Tensor
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    block: tuple[int, ...]
    how: str
    is_ragged: bool
    cells: int

    @property
    def sentence(self) -> str:
        """The meaning of one cell."""
        if math.prod(self.block) == 1:
            cell = "one weight" if self.how == "mean" else "one |weight|"
        else:
            size = " × ".join(f"{width:,}" for width in self.block)
            what = "mean" if self.how == "mean" else "largest |w|"
            cell = f"the {what} of {size} weights"
        ragged = ", of fewer at the lower and right edge" if self.is_ragged else ""
        end = f"{ragged}." if len(self.block) > 1 else ", read row by row."
        return f"Each cell is {cell}{end}"


def pooled(tensor: Tensor, how: str = "mean", most: int = MOST_CELLS) -> PooledTensor:
    """A matrix, or a vector in rows, as cells that hold the mean or the largest |w|."""
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
    return PooledTensor(
        values,
        _spans(height, down),
        _spans(width, across),
        (down, across),
        how,
        is_ragged,
        values.numel(),
    )


def _of_vector(vector: Tensor, how: str) -> PooledTensor:
    """A vector in rows: neighbours are pooled first, so a row of cells is a slice of it."""
    count = len(vector)
    size = max(1, -(-count // VECTOR_WIDTH**2))
    cells = _pooled_row(vector[None], size, how)
    width = max(1, min(VECTOR_WIDTH, len(cells)))
    height = -(-len(cells) // width)
    values = cells.new_full((height * width,), math.nan)
    values[: len(cells)] = cells
    starts = _spans(count, size * width)
    columns = tuple(f"+{at * size}" for at in range(width))
    return PooledTensor(
        values.view(height, width), starts, columns, (size,), how, count % size > 0, len(cells)
    )


def _pooled_row(part: Tensor, across: int, how: str) -> Tensor:
    """One row of cells: `part` is as many rows of numbers as a cell is high."""
    if not part.numel():
        return part.new_empty(0, dtype=torch.float32)
    numbers, block = part.double()[None], (len(part), across)
    if how == "largest":
        return max_pool2d(numbers.abs(), block, ceil_mode=True)[0, 0].float()
    return avg_pool2d(numbers, block, ceil_mode=True)[0, 0].float()


def _spans(count: int, size: int) -> tuple[str, ...]:
    """The range of each block: "7", or "12–17" where it has several numbers."""
    ends = [(start, min(start + size, count) - 1) for start in range(0, count, size)]
    return tuple(str(first) if first == last else f"{first}–{last}" for first, last in ends)
