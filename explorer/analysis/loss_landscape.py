"""The loss around the weights of a model, along two directions.

Source: Visualizing the Loss Landscape of Neural Nets (Li et al. 2018, arXiv:1712.09913): random
directions whose filters have the norms of the weights' filters (section 4), and the directions in
which a training moved most, by PCA of its snapshots (section 7.2).
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import functional_call

from models.losses import label_smoothing
from models.model import Transformer
from models.training import Batch
from models.transformer import evaluating

Weights = Mapping[str, Tensor]


@dataclass(frozen=True, eq=False)
class Plane:
    """Two directions in the space of weights, from the weights of a model.

    `path` are the places of the snapshots on the plane, (snapshots, 2), and `explained` is the
    share of their squared distances that lies in it.
    """

    first: Weights
    second: Weights
    path: Tensor
    explained: float


def random_plane(snapshots: Sequence[Weights], seed: int) -> Plane:
    """Two random directions, filter-normalised: each row of a matrix has the norm of the weights'.

    Vectors, such as biases and norms, do not change: their directions are zero.
    """
    origin, random = snapshots[-1], torch.Generator().manual_seed(seed)
    first, second = (
        {
            name: _like_filters(torch.randn(value.shape, generator=random), value)
            for name, value in origin.items()
        }
        for _ in range(2)
    )
    return _plane(snapshots, first, second)


def training_plane(snapshots: Sequence[Weights]) -> Plane:
    """The two directions in which the snapshots are furthest from the last one.

    They come from eigenvectors of the products of differences, so memory is that of the snapshots.
    """
    *earlier, last = snapshots
    ways = torch.stack([_difference(snapshot, last) for snapshot in earlier]).double()
    _, vectors = torch.linalg.eigh(ways @ ways.T)
    axes = vectors[:, -2:].T.flip(0) @ ways
    axes = axes / axes.norm(dim=1, keepdim=True).clamp(min=1e-12)
    first, second = (_shaped(axis.float(), last) for axis in axes)
    return _plane(snapshots, first, second)


def losses(
    model: Transformer, batch: Batch, plane: Plane, across: Sequence[float], down: Sequence[float]
) -> Iterator[Tensor]:
    """A row of the loss (across,) for each place along the second direction, in nats per label.

    One forward pass for every place, without dropout and label smoothing.
    """
    model = copy.deepcopy(model)  # the call below changes its weights while other sessions read it
    origin = weights_of(model)
    with evaluating(model):
        for y in down:
            row = []
            for x in across:
                moved = {
                    name: value + x * plane.first[name] + y * plane.second[name]
                    for name, value in origin.items()
                }
                logits = functional_call(model, moved, batch.inputs)
                row.append(label_smoothing(logits, batch.labels, 0.0))
            yield torch.stack(row)


def weights_of(model: Transformer) -> dict[str, Tensor]:
    return {name: value.detach() for name, value in model.named_parameters()}


def _like_filters(direction: Tensor, weights: Tensor) -> Tensor:
    if weights.dim() < 2:
        return torch.zeros_like(weights)
    rows, own = direction.flatten(1), weights.flatten(1)
    scaled = rows * (own.norm(dim=1, keepdim=True) / rows.norm(dim=1, keepdim=True).clamp(1e-12))
    return scaled.view_as(weights)


def _plane(snapshots: Sequence[Weights], first: Weights, second: Weights) -> Plane:
    """The plane with the snapshots, by least squares: the directions need not be orthogonal."""
    origin = snapshots[-1]
    axes = torch.stack([_flat(direction, origin) for direction in (first, second)]).double()
    ways = torch.stack([_difference(direction, origin) for direction in snapshots]).double()
    path = torch.linalg.lstsq(axes.T, ways.T).solution.T
    inside, whole = float((path @ axes).square().sum()), float(ways.square().sum())
    return Plane(first, second, path.float(), inside / whole if whole else 0.0)


def _flat(weights: Weights, like: Weights) -> Tensor:
    return torch.cat([weights[name].flatten() for name in like])


def _difference(weights: Weights, origin: Weights) -> Tensor:
    return _flat(weights, origin) - _flat(origin, origin)


def _shaped(vector: Tensor, like: Weights) -> dict[str, Tensor]:
    parts = vector.split([value.numel() for value in like.values()])
    return {name: part.view_as(like[name]) for name, part in zip(like, parts, strict=True)}
