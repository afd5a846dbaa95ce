"""One update of the weights in its stages: every value of a step of `models.training.train`.

`train` itself does the step, while hooks of the model and of its parameters record it. So its
loss, its gradient norm and its weights are those of the training, bit for bit.
Shapes: b texts, t tokens (none for a classifier's labels), v vocabulary.
"""

import math
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from explorer.analysis.weight_statistics import IN_A_LAYER
from explorer.catalog.pass_budget import steps_between_layers
from models.config import TrainConfig
from models.losses import IGNORE
from models.training import Batch, Report, TrainState, batch_loss, in_precision, seeded, train

GOOD_RATIO = 1e-3
"""About the norm of an update over that of its weights, at a suitable learning rate.

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
        """The norm of the update over that of the weights; NaN where these are all zero."""
        return self.update_norm / self.weight_norm if self.weight_norm else float("nan")


@dataclass(frozen=True, eq=False)
class OneUpdate:
    """An update after `step` earlier ones.

    `losses` (b, *t) are those of training, in nats and with label smoothing, and NaN without a
    label: their mean is the report's loss. `loss_after` is the loss on the same batch with the
    same dropout, after the update. `gradients` are those before clipping, by parameter name.
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
        """The factor by which clipping multiplies the gradients: at most 1."""
        return min(1.0, self.clip / (self.report.grad_norm + 1e-6)) if self.clip else 1.0

    def parameters(self) -> list[ParameterUpdate]:
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
        """Gradient × update, summed over all weights: the change of the loss if it were linear."""
        moved = ((self.after[name] - weight).double() for name, weight in self.before.items())
        pairs = zip(moved, self.gradients.values(), strict=True)
        return float(sum((move * gradient).sum() for move, gradient in pairs))

    def against_gradient(self, name: str) -> float:
        """The share of the weights that move against the sign of this batch's gradient.

        Of those that have a gradient and move; NaN if there are none.
        """
        moved = torch.sign(self.after[name] - self.before[name])
        signs = torch.sign(self.gradients[name])
        both = (moved != 0) & (signs != 0)
        return float((moved[both] == -signs[both]).double().mean())


def take_apart(
    model: nn.Module, batch_at: Callable[[int], Batch], config: TrainConfig, state: TrainState
) -> OneUpdate:
    """Do the next update of this training, and keep its values.

    The model and the state are one step further afterwards. Costs four forward passes and three
    copies of the weights.
    """
    step, device = state.step, next(model.parameters()).device
    parameters = dict(model.named_parameters())
    before = {name: parameter.detach().clone() for name, parameter in parameters.items()}
    gradients = {name: torch.zeros_like(parameter) for name, parameter in before.items()}
    logits: list[Tensor] = []

    def keep_logits(_model: nn.Module, _inputs: Any, output: Tensor) -> None:
        logits.append(output.detach().float())

    with ExitStack() as watching:
        watching.enter_context(model.register_forward_hook(keep_logits))
        for name, parameter in parameters.items():
            if not parameter.requires_grad:  # frozen: it has no gradient and does not change
                continue

            def keep_gradient(weight: Tensor, name: str = name) -> None:
                assert weight.grad is not None
                gradients[name] = weight.grad.detach().clone()

            watching.enter_context(parameter.register_post_accumulate_grad_hook(keep_gradient))
        watching.enter_context(steps_between_layers(model, state.optimizer))
        report = next(train(model, batch_at, config, state))
    batch = batch_at(step)
    losses = token_losses(torch.cat(logits), batch.labels.to(device), config.label_smoothing)
    after = {name: parameter.detach().clone() for name, parameter in parameters.items()}
    with torch.no_grad(), seeded(config.seed, step, device):
        of_parts = []  # part by part and in its precision, as the training computes it
        for part in batch.to(device).parts(config.accumulation):
            with in_precision(config.precision, device):
                of_parts.append(batch_loss(model, part, config.label_smoothing, batch.n_labels))
        loss_after = float(torch.stack(of_parts).sum())
    return OneUpdate(step, report, batch, losses, loss_after, before, gradients, after, config.clip)


def token_losses(logits: Tensor, labels: Tensor, smoothing: float = 0.0) -> Tensor:
    """The loss of every label in nats, with the shape of the labels (b, *t); NaN without one."""
    flat = F.cross_entropy(
        logits.flatten(0, -2),
        labels.flatten(),
        ignore_index=IGNORE,
        label_smoothing=smoothing,
        reduction="none",
    )
    return flat.view_as(labels).masked_fill(labels == IGNORE, float("nan"))


def block_of(name: str) -> str:
    """The title of the part of the model that a parameter belongs to."""
    place = IN_A_LAYER.fullmatch(name)
    if place is None:
        return name.removesuffix(".weight").removesuffix(".bias").replace(".", " ")
    part = place["part"].partition(".")[0]
    title = PART_TITLES.get(part, part.replace("_", " "))
    return f"{place['stack']} layer {place['layer']} {title}"


PART_TITLES = {
    "self_attn": "self-attention",
    "cross_attn": "cross-attention",
    "mlp": "feed-forward",
    "self_residual": "self-attention's norm",
    "cross_residual": "cross-attention's norm",
    "mlp_residual": "feed-forward's norm",
}


def by_block(updates: list[ParameterUpdate]) -> list[ParameterUpdate]:
    """The update of each part of the model, with the norms over all of its parameters."""
    blocks: dict[str, list[ParameterUpdate]] = {}
    for update in updates:
        blocks.setdefault(block_of(update.name), []).append(update)
    return [
        ParameterUpdate(
            name,
            sum(update.count for update in inside),
            math.hypot(*(update.weight_norm for update in inside)),
            math.hypot(*(update.gradient_norm for update in inside)),
            math.hypot(*(update.update_norm for update in inside)),
        )
        for name, inside in blocks.items()
    ]
