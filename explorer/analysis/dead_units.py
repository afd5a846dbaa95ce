"""Dead units: feed-forward units that no token of a batch activates."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from models import Transformer, trace

SMALL = 0.01
"""The share of a layer's largest activation below which a unit counts as dead, where the
activation function has no exact zero."""


@dataclass(frozen=True, eq=False)
class LayerUnits:
    """One feed-forward layer: the largest absolute activation of every unit over the tokens."""

    stack: str
    layer: int
    largest: Float[Tensor, " d_ff"]
    is_exact: bool
    """Whether an inactive unit is exactly zero, as with ReLU."""

    @property
    def dead(self) -> Bool[Tensor, " d_ff"]:
        """Never above zero; without an exact zero, never above 1 % of the layer's largest."""
        return self.largest <= (0.0 if self.is_exact else SMALL * float(self.largest.max()))

    @property
    def share(self) -> float:
        return float(self.dead.float().mean())


def layer_units(model: Transformer, inputs: tuple[Int[Tensor, "b _t"], ...]) -> list[LayerUnits]:
    """The units of every feed-forward layer over the tokens of a batch without padding.

    Costs one pass; memory holds the activations of all layers, layers × tokens × d_ff.
    """
    passed = trace(model, *inputs, sites=["*.mlp.hidden"] if model.config.d_ff else [])
    config, units = model.config, list[LayerUnits]()
    for name, values in passed.values.items():
        stack, layer, _ = name.split(".", 2)
        ids = inputs[-1] if stack == "decoder" else inputs[0]
        real = torch.ones_like(ids, dtype=torch.bool)
        if config.pad_id is not None:
            real = ids != config.pad_id
        largest = values[real].abs().amax(0)
        is_exact = config.activation == "relu" and not config.gated
        units.append(LayerUnits(stack, int(layer), largest, is_exact))
    return units
