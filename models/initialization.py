"""Fresh weights from a seed, with a spread at which small models learn in seconds.

Matrices and embeddings start normal with standard deviation 0.8/√d_model, and those
that write to the residual stream are also divided by √(2 · layers), so that it does
not grow with depth (GPT-2, Radford et al. 2019, section 2.3). Norms start
at one and biases at zero. Numbers are drawn on the CPU, the same for every device.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from models.config import TransformerConfig

WRITES_TO_STREAM = ("o_proj.weight", "down_proj.weight")


def initialize(model: nn.Module, config: TransformerConfig, seed: int) -> None:
    """Overwrite every parameter. Leaves the global random state as it was."""
    generator = torch.Generator().manual_seed(seed)
    spread = 0.8 / config.d_model**0.5
    depth = (2 * max(config.n_layers, config.encoder_layers)) ** 0.5
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.is_meta:
                continue
            if name.endswith("bias"):
                parameter.zero_()
            elif parameter.dim() == 1:
                parameter.fill_(1.0)
            else:
                std = spread / depth if name.endswith(WRITES_TO_STREAM) else spread
                numbers = torch.empty_like(parameter, device="cpu")
                parameter.copy_(numbers.normal_(0.0, std, generator=generator))


class NoInitialization(TorchFunctionMode):
    """Modules built in here have undefined weights until `initialize`."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: Mapping | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__module__", None) == nn.init.__name__:
            return kwargs.get("tensor", args[0] if args else None)
        return func(*args, **kwargs)
