"""Optimizers by name, over the parameters of a model that are trained.

Each is one object, whose memory of a parameter is plain tensors: a checkpoint keeps them by
the parameter's name.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn
from torch.optim import AdamW, Muon, Optimizer

OPTIMIZERS = ("adamw", "adam", "sgd", "muon")


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


def optimizer_of(
    model: nn.Module,
    name: str,
    lr: float,
    momentum: float,
    beta2: float,
    eps: float,
    weight_decay: float,
) -> Optimizer:
    """Weight decay is for matrices; norms, biases and other vectors are left alone.

    What is frozen is in no group. Muon is for the matrices inside of blocks.
    """
    trained = {where: p for where, p in model.named_parameters() if p.requires_grad}
    matrices = [p for p in trained.values() if p.dim() > 1]
    vectors = [p for p in trained.values() if p.dim() <= 1]
    if name == "sgd":
        groups = _decayed(matrices, vectors, weight_decay)
        return torch.optim.SGD(groups, lr=lr, momentum=momentum, fused=True)
    adams: dict[str, Any] = {"lr": lr, "betas": (momentum, beta2), "eps": eps}
    if name == "muon":
        hidden = [p for where, p in trained.items() if ".blocks." in where and p.dim() == 2]
        rest = [p for where, p in trained.items() if ".blocks." not in where and p.dim() > 1]
        muons = {"params": hidden, "lr": lr, "momentum": momentum, "weight_decay": weight_decay}
        others = _decayed(rest, vectors, weight_decay)
        return MuonAndAdamW([muons], [group | adams for group in others])
    kind = AdamW if name == "adamw" else torch.optim.Adam
    return kind(_decayed(matrices, vectors, weight_decay), fused=True, **adams)


def remembered(group: dict[str, Any]) -> set[str]:
    """What an optimizer remembers of each parameter of this group."""
    if "betas" in group:
        return {"step", "exp_avg", "exp_avg_sq"}
    return {"momentum_buffer"} if group["momentum"] or "ns_steps" in group else set()


def _decayed(
    matrices: list[nn.Parameter], vectors: list[nn.Parameter], weight_decay: float
) -> list[dict[str, Any]]:
    decay = {"params": matrices, "weight_decay": weight_decay}
    return [decay, {"params": vectors, "weight_decay": 0.0}]
