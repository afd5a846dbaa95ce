"""Optimizers by name, over the trained parameters of a model."""

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
        return MuonAndAdamW([how | {"params": hidden} | decay], groups)
    kind = AdamW if config.optimizer == "adamw" else torch.optim.Adam
    return kind([{"params": matrices} | decay, vectors], fused=True, **adams)
