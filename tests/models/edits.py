"""An edit that only the tests need: the other way to mask a key."""

from dataclasses import dataclass

import torch
from torch import Tensor

from models.interventions import EditError


@dataclass(frozen=True)
class RemoveKey:
    """At a `weights` site the column of one key is zero, and the rows are renormalised."""

    site: str
    key: int

    def __call__(self, value: Tensor) -> Tensor:
        if not value.is_floating_point():
            raise EditError(f"{self.site} holds no weights.")
        removed = torch.arange(value.shape[-1], device=value.device) == self.key
        left = value.masked_fill(removed, 0.0)
        total = left.sum(-1, keepdim=True)
        return torch.where(total > 0, left / total.clamp(min=torch.finfo(value.dtype).tiny), left)
