"""One update taken apart: what `models.training.train` does in a step, and every value on its way.

Nothing is computed in another way here: the step is one of `train` itself, which hooks of the
model and of its parameters watch. So its loss, its gradient norm and its weights are those of the
training, bit for bit.
Shapes: b texts, t tokens (none for a classifier's labels), v vocabulary.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from explorer.analysis.weight_statistics import IN_A_LAYER
from models.config import TrainConfig
from models.losses import IGNORE
from models.training import Batch, Report, TrainState, batch_loss, in_precision, seeded, train

GOOD_RATIO = 1e-3
"""About how long an update is beside its weights where a learning rate suits.

Source: Karpathy, CS231n, Neural Networks Part 3: "ratio of weights:updates".
"""


@dataclass(frozen=True)
class ParameterUpdate:
    """One parameter in one update, in Euclidean norms."""

    name: str
    count: int
    weight_norm: float
    gradient_norm: float
    update_norm: float

    @property
    def ratio(self) -> float:
        """The length of the update beside that of the weights; NaN where these are all zero."""
        return self.update_norm / self.weight_norm if self.weight_norm else float("nan")


@dataclass(frozen=True, eq=False)
class OneUpdate:
    """An update after `step` earlier ones.

    `losses` (b, *t) are in nats as the training counts them, with its label smoothing, and NaN
    without a label: their mean is the report's loss. `loss_after` is that of the same batch with
    the same dropout, after the update. `gradients` are those before they are clipped, by the
    parameters' names.
    """

    step: int
    report: Report
    batch: Batch
    losses: Tensor
    loss_after: float
    before: dict[str, Tensor]
    gradients: dict[str, Tensor]
    after: dict[str, Tensor]
    clip: float

    @property
    def scale(self) -> float:
        """What clipping multiplies the gradients by: at most 1."""
        return min(1.0, self.clip / (self.report.grad_norm + 1e-6)) if self.clip else 1.0

    def parameters(self) -> list[ParameterUpdate]:
        """Every parameter, in the order of the model."""
        return [
            ParameterUpdate(
                name,
                before.numel(),
                float(before.double().norm()),
                float(self.gradients[name].double().norm()),
                float((self.after[name].double() - before.double()).norm()),
            )
            for name, before in self.before.items()
        ]

    @property
    def linear_change(self) -> float:
        """Gradient × update, summed over all weights: the change of a loss that were a plane."""
        moved = ((self.after[name] - each).double() for name, each in self.before.items())
        pairs = zip(moved, self.gradients.values(), strict=True)
        return float(sum((move * gradient).sum() for move, gradient in pairs))

    def against_gradient(self, name: str) -> float:
        """The share of the changed weights that move against the sign of this batch's gradient."""
        moved = torch.sign(self.after[name] - self.before[name])
        signs = torch.sign(self.gradients[name])
        both = (moved != 0) & (signs != 0)
        return float((moved[both] == -signs[both]).double().mean()) if bool(both.any()) else 0.0


def take_apart(
    model: nn.Module,
    batch_at: Callable[[int], Batch],
    config: TrainConfig,
    state: TrainState,
) -> OneUpdate:
    """Do the next update of this training, and keep what it went through.

    The model and the state are one step further afterwards. Costs four forward passes and three
    copies of the weights.
    """
    step, device = state.step, next(model.parameters()).device
    named = dict(model.named_parameters())
    before = {name: each.detach().clone() for name, each in named.items()}
    gradients = {name: torch.zeros_like(each) for name, each in before.items()}
    logits: list[Tensor] = []

    def keep_logits(_model: nn.Module, _inputs: Any, found: Tensor) -> None:
        logits.append(found.detach().float())

    with ExitStack() as watching:
        watching.enter_context(_removing(model.register_forward_hook(keep_logits)))
        for name, each in named.items():
            if not each.requires_grad:  # frozen: it has no gradient, and stays as it is
                continue

            def keep_gradient(found: Tensor, name: str = name) -> None:
                assert found.grad is not None
                gradients[name] = found.grad.detach().clone()

            hook = each.register_post_accumulate_grad_hook(keep_gradient)
            watching.enter_context(_removing(hook))
        report = next(train(model, batch_at, config, state))
    batch = batch_at(step)
    losses = token_losses(torch.cat(logits), batch.labels.to(device), config.label_smoothing)
    after = {name: each.detach().clone() for name, each in named.items()}
    with torch.no_grad(), seeded(config.seed, step, device):
        loss_after = _loss(model, batch.to(device), config)
    return OneUpdate(step, report, batch, losses, loss_after, before, gradients, after, config.clip)


def _loss(model: nn.Module, batch: Batch, config: TrainConfig) -> float:
    """The loss as the training computes it, part by part and in its precision."""
    found = []
    for part in batch.parts(config.accumulation):
        with in_precision(config.precision, batch.labels.device):
            found.append(batch_loss(model, part, config.label_smoothing, batch.n_labels))
    return float(torch.stack(found).sum())


def token_losses(logits: Tensor, labels: Tensor, smoothing: float = 0.0) -> Tensor:
    """The loss of every label in nats; NaN where there is none. Shaped as the labels, (b, *t)."""
    flat = F.cross_entropy(
        logits.flatten(0, -2),
        labels.flatten(),
        ignore_index=IGNORE,
        label_smoothing=smoothing,
        reduction="none",
    )
    return flat.view_as(labels).masked_fill(labels == IGNORE, float("nan"))


def block_of(name: str) -> str:
    """The part of the model that a parameter belongs to, in words."""
    place = IN_A_LAYER.fullmatch(name)
    if place is None:
        return name.removesuffix(".weight").removesuffix(".bias").replace(".", " ")
    part = place["part"].partition(".")[0]
    said = PARTS.get(part, part.replace("_", " "))
    return f"{place['stack']} layer {place['layer']} {said}"


PARTS = {
    "self_attn": "self-attention",
    "cross_attn": "cross-attention",
    "mlp": "feed-forward",
    "self_residual": "self-attention's norm",
    "cross_residual": "cross-attention's norm",
    "mlp_residual": "feed-forward's norm",
}


def by_block(found: list[ParameterUpdate]) -> list[ParameterUpdate]:
    """The same for each part of the model: norms of all its parameters together."""
    blocks: dict[str, list[ParameterUpdate]] = {}
    for each in found:
        blocks.setdefault(block_of(each.name), []).append(each)
    return [
        ParameterUpdate(
            name,
            sum(each.count for each in inside),
            _together(each.weight_norm for each in inside),
            _together(each.gradient_norm for each in inside),
            _together(each.update_norm for each in inside),
        )
        for name, inside in blocks.items()
    ]


def _together(norms: Iterable[float]) -> float:
    return math.sqrt(sum(norm**2 for norm in norms))


@contextmanager
def _removing(hook: RemovableHandle) -> Iterator[None]:
    """The hook while this lasts."""
    try:
        yield
    finally:
        hook.remove()
