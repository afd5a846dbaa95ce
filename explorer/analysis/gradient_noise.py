"""The gradient noise scale: how large a batch has to be before more examples help little.

Source: An Empirical Model of Large-Batch Training (McCandlish et al. 2018), appendix A.1.
"""

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from models.model import Transformer
from models.training import Batch, batch_loss

GROUPS = 4
"""The estimate is made of all batches, and of so many groups of them: their range is shown."""


@dataclass(frozen=True)
class NoiseScale:
    """`scale` = trace(Σ) ÷ ‖G‖² examples, from `batches` gradients of `batch_size` examples each.

    `squared_gradient` estimates ‖G‖², `trace` the summed variance of the gradient of one example,
    both without bias. `low` and `high` are the least and largest scale of the groups; NaN where
    an estimate of ‖G‖² is not above zero: then the batches are too few to tell.
    """

    batches: int
    batch_size: int
    squared_gradient: float
    trace: float
    scale: float
    low: float
    high: float


def gradients(
    model: Transformer, batch_at: Callable[[int], Batch], count: int, smoothing: float = 0.0
) -> Iterator[Tensor]:
    """The gradient of the loss of each batch as one vector, (parameters,), without dropout."""
    model = copy.deepcopy(model).eval().requires_grad_()  # others read the given one meanwhile
    weights = [*model.parameters()]
    for at in range(count):
        loss = batch_loss(model, batch_at(at), smoothing)
        found = torch.autograd.grad(loss, weights, materialize_grads=True)
        yield torch.cat([each.flatten() for each in found])


def noise_scale(found: Sequence[Tensor], batch_size: int) -> NoiseScale:
    """Of gradients (parameters,), each of a batch of so many examples. Cost: their sum."""
    squared, trace = _estimates(found, batch_size)
    size = len(found) // GROUPS
    parts = [found[start : start + size] for start in range(0, size * GROUPS, size)] if size else []
    scales = [_scale(*_estimates(part, batch_size)) for part in parts if len(part) > 1]
    return NoiseScale(
        len(found),
        batch_size,
        squared,
        trace,
        _scale(squared, trace),
        min(scales, default=math.nan),
        max(scales, default=math.nan),
    )


def _estimates(found: Sequence[Tensor], small: int) -> tuple[float, float]:
    """‖G‖² and trace(Σ), from the mean of the squared norms and the squared norm of the mean."""
    large = small * len(found)
    mean = found[0].double()  # added up one by one: together they would take three times the room
    for each in found[1:]:
        mean += each
    mean /= len(found)
    of_small = sum(float(each.double().square().sum()) for each in found) / len(found)
    of_large = float(mean.square().sum())
    squared = (large * of_large - small * of_small) / (large - small)
    trace = (of_small - of_large) / (1 / small - 1 / large)
    return squared, trace


def _scale(squared: float, trace: float) -> float:
    return trace / squared if squared > 0 else math.nan
