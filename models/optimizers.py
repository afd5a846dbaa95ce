"""Optimizers by name, over the trained parameters of a model."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from models.config import TrainConfig


class NewtonSchulz(nn.Module):
    """One iteration that brings the singular values of a matrix nearer to 1.

    Its quintic has the coefficients of Muon (Jordan et al. 2024): they raise small values fastest.
    It has no weights; as a module it can have hooks before each iteration.
    """

    def forward(self, x: Float[Tensor, "m n"]) -> Float[Tensor, "m n"]:
        gram = x @ x.mT
        return 3.4445 * x + (2.0315 * gram @ gram - 4.7750 * gram) @ x


class MuonAndAdamW(Optimizer):
    """Muon for the matrices of the first group, AdamW for the others: one optimizer over both.

    Muon's update is made orthogonal, so all directions of a matrix learn at one speed; it is
    scaled to the size of AdamW's, so that one learning rate serves both.
    Sources: Muon (Jordan et al. 2024); Muon is Scalable for LLM Training (Liu et al. 2025).
    """

    def __init__(self, hidden: dict[str, Any], others: Iterable[dict[str, Any]]) -> None:
        self._adamw, self.newton_schulz = AdamW(others, fused=True), NewtonSchulz()
        super().__init__([hidden | {"ns_steps": 5}, *self._adamw.param_groups], {})
        self._adamw.state = self.state

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """No weight changes before all of Muon's updates are known: it can be interrupted there."""
        assert closure is None
        how = self.param_groups[0]
        matrices = [matrix for matrix in how["params"] if matrix.grad is not None]
        updates = [self._update(matrix) for matrix in matrices]
        for matrix, (average, update) in zip(matrices, updates, strict=True):
            self.state[matrix]["momentum_buffer"] = average
            matrix.mul_(1 - how["lr"] * how["weight_decay"])
            matrix.sub_(update, alpha=how["lr"] * 0.2 * math.sqrt(max(matrix.shape)))
        self._adamw.step()

    def _update(self, matrix: Tensor) -> tuple[Tensor, Tensor]:
        """The new average of the gradients of a matrix, and its orthogonal update."""
        momentum, gradient = self.param_groups[0]["momentum"], matrix.grad
        assert gradient is not None
        before = self.state.get(matrix, {}).get("momentum_buffer")
        average = (
            gradient * (1 - momentum) if before is None else before.lerp(gradient, 1 - momentum)
        )
        x = gradient.lerp(average, momentum)  # the average one step ahead (Nesterov)
        is_tall = x.size(0) > x.size(1)
        x = x / x.norm().clamp(min=1e-7)
        x = x.mT if is_tall else x
        for _ in range(self.param_groups[0]["ns_steps"]):
            x = self.newton_schulz(x)
        return average, x.mT if is_tall else x


def build_optimizer(model: nn.Module, config: TrainConfig) -> Optimizer:
    """An optimizer of what is trained. Matrices decay; norms, biases and other vectors do not.

    Muon is for the matrices inside of blocks.
    """
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    matrices = [p for p in trained.values() if p.dim() > 1]
    vectors: dict[str, Any] = {"params": [p for p in trained.values() if p.dim() <= 1]}
    vectors["weight_decay"] = 0.0
    decay: dict[str, Any] = {"weight_decay": config.weight_decay}
    how: dict[str, Any] = {"lr": config.lr, "momentum": config.momentum}
    if config.optimizer == "sgd":
        return torch.optim.SGD([{"params": matrices} | decay, vectors], fused=True, **how)
    adams: dict[str, Any] = {"lr": config.lr, "betas": (config.momentum, config.beta2)}
    adams["eps"] = config.eps
    if config.optimizer == "muon":
        hidden = [p for name, p in trained.items() if ".blocks." in name and p.dim() == 2]
        rest = [p for name, p in trained.items() if ".blocks." not in name and p.dim() > 1]
        groups = {"params": rest} | decay | adams, vectors | adams
        return MuonAndAdamW(how | {"params": hidden} | decay, groups)
    kind = AdamW if config.optimizer == "adamw" else torch.optim.Adam
    return kind([{"params": matrices} | decay, vectors], fused=True, **adams)
