"""The gradient noise scale: the batch size beyond which more examples help little.

Source: An Empirical Model of Large-Batch Training (McCandlish et al. 2018), appendix A.1.
"""

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.catalog.pass_budget import steps_between_layers
from models.model import Transformer
from models.training import Batch, batch_loss

GROUPS = 4
"""The range is that of the estimates from this many groups of the batches."""


@dataclass(frozen=True)
class NoiseScale:
    """`scale` = trace(Σ) ÷ ‖G‖² examples, from `batches` gradients of `batch_size` examples each.

    `squared_gradient` estimates ‖G‖², `trace` the summed variance of the gradient of one example,
    both without bias. `low` and `high` are the smallest and largest scale of the groups; NaN where
    an estimate of ‖G‖² is not above zero, because there are too few batches.
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
    model = copy.deepcopy(model).eval().requires_grad_()  # other sessions use the model meanwhile
    weights = [*model.parameters()]
    for at in range(count):
        with steps_between_layers(model):
            loss = batch_loss(model, batch_at(at), smoothing)
            by_weight = torch.autograd.grad(loss, weights, materialize_grads=True)
        yield torch.cat([gradient.flatten() for gradient in by_weight])


def noise_scale(gradients: Sequence[Tensor], batch_size: int) -> NoiseScale:
    """The scale from gradients (parameters,), each of `batch_size` examples. Cost: their sum."""
    squared, trace, scale = _estimates(gradients, batch_size)
    size = len(gradients) // GROUPS
    groups = [gradients[at * size : (at + 1) * size] for at in range(GROUPS)]
    scales = [_estimates(group, batch_size)[2] for group in groups if len(group) > 1]
    return NoiseScale(
        len(gradients),
        batch_size,
        squared,
        trace,
        scale,
        min(scales, default=math.nan),
        max(scales, default=math.nan),
    )


def _estimates(gradients: Sequence[Tensor], small: int) -> tuple[float, float, float]:
    """‖G‖², trace(Σ), scale: by the mean of the squared norms and the squared norm of the mean."""
    large = small * len(gradients)
    mean = gradients[0].double()  # summed one by one: a stack would need three times the memory
    for gradient in gradients[1:]:
        mean += gradient
    mean /= len(gradients)
    squares = (float(gradient.double().square().sum()) for gradient in gradients)
    of_small = sum(squares) / len(gradients)
    of_large = float(mean.square().sum())
    squared = (large * of_large - small * of_small) / (large - small)
    trace = (of_small - of_large) / (1 / small - 1 / large)
    return squared, trace, trace / squared if squared > 0 else math.nan
