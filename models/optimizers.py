"""Optimizers by name, over the parameters of a model that are trained."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn
from torch.optim import AdamW, Muon, Optimizer

from models.config import TrainConfig


class MuonAndAdamW(Optimizer):
    """Muon for the groups that ask for it, AdamW for the others: one optimizer over both.

    Muon's update is made orthogonal, so all directions of a matrix learn at one speed; it is
    scaled to the size of AdamW's, so that one learning rate serves both.
    Sources: Muon (Jordan et al. 2024); Muon is Scalable for LLM Training (Liu et al. 2025).
    """

    def __init__(self, hidden: Iterable[dict[str, Any]], others: Iterable[dict[str, Any]]) -> None:
        self._parts = Muon(hidden, adjust_lr_fn="match_rms_adamw"), AdamW(others, fused=True)
        super().__init__([group for part in self._parts for group in part.param_groups], {})
        for part in self._parts:
            part.state = self.state

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        assert closure is None
        for part in self._parts:
            part.step()


def build_optimizer(model: nn.Module, config: TrainConfig) -> Optimizer:
    """Weight decay is for matrices; norms, biases and other vectors are left alone.

    What is frozen is in no group. Muon is for the matrices inside of blocks.
    """
    trained = {where: p for where, p in model.named_parameters() if p.requires_grad}
    matrices = [p for p in trained.values() if p.dim() > 1]
    vectors = [p for p in trained.values() if p.dim() <= 1]
    how: dict[str, Any] = {"lr": config.lr, "momentum": config.momentum}
    if config.optimizer == "sgd":
        return torch.optim.SGD(_decayed(matrices, vectors, config), fused=True, **how)
    adams: dict[str, Any] = {"lr": config.lr, "betas": (config.momentum, config.beta2)}
    adams["eps"] = config.eps
    if config.optimizer == "muon":
        hidden = [p for where, p in trained.items() if ".blocks." in where and p.dim() == 2]
        rest = [p for where, p in trained.items() if ".blocks." not in where and p.dim() > 1]
        muons = how | {"params": hidden, "weight_decay": config.weight_decay}
        others = _decayed(rest, vectors, config)
        return MuonAndAdamW([muons], [group | adams for group in others])
    kind = AdamW if config.optimizer == "adamw" else torch.optim.Adam
    return kind(_decayed(matrices, vectors, config), fused=True, **adams)


def _decayed(
    matrices: list[nn.Parameter], vectors: list[nn.Parameter], config: TrainConfig
) -> list[dict[str, Any]]:
    decay = {"params": matrices, "weight_decay": config.weight_decay}
    return [decay, {"params": vectors, "weight_decay": 0.0}]
