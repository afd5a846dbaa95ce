"""Gradients of one number of the output by the values that a tap is shown."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from models.interventions import Edit, EditError
from models.trace import RecordingTap
from models.transformer import EVERYWHERE, Transformer, evaluating


class GradientError(ValueError):
    """A gradient that is no number, in one sentence."""


@dataclass(frozen=True, eq=False)
class Gradients:
    """The values at the sites that were asked for, and ∂`scalar`/∂value, of the same shapes."""

    values: dict[str, Tensor]
    gradients: dict[str, Tensor]
    output: Tensor
    scalar: float


class _DifferentiatedTap(RecordingTap):
    """Records values that are part of a graph, each under a name of its own in it."""

    def __call__(self, name: str, value: Tensor) -> Tensor:
        value, site = super().__call__(name, value), self._prefix + name
        if not (self._sites.match(site) and value.is_floating_point()):
            self.values.pop(site, None)
            return value
        # A value that several parts read has one view for each, and so one gradient for each.
        value = value.view_as(value) if value.requires_grad else value.detach().requires_grad_()
        self.values[site] = value
        return value


def gradients(
    model: Transformer,
    *inputs: Tensor,
    of: Callable[[Tensor], Tensor],
    sites: Sequence[str],
    edits: Sequence[Edit] = (),
    read_at: slice = EVERYWHERE,
    **how: Any,
) -> Gradients:
    """The values of `sites` in one forward pass, and the gradient of `of(output)` by each.

    `of` gives one number; the sum over a batch, whose rows know nothing of each other, gives the
    gradients of each row. Names, edits and the other arguments are those of `trace`, without
    dropout; nothing is stored on the model. Costs a forward and a backward pass, and holds every
    value between the first site and the output. EditError as there; GradientError where a gradient
    is not finite. Source: Attribution Patching (Nanda 2023), on gradients by activations.
    """
    tap = _DifferentiatedTap(sites, edits)
    with evaluating(model), torch.enable_grad():
        output = model(*inputs, read_at=read_at, tap=tap, **how)
        if missed := tap.unfired():
            raise EditError(f"No site of this pass is called {', '.join(missed)}.")
        scalar = of(output)
        if scalar.numel() != 1:
            raise ValueError(f"A gradient is that of one number, not of {tuple(scalar.shape)}.")
        found = torch.autograd.grad(scalar, list(tap.values.values()), materialize_grads=True)
    for site, gradient in zip(tap.values, found, strict=True):
        if not bool(gradient.isfinite().all()):
            raise GradientError(f"The gradient at {site} is not finite, so it says nothing.")
    values = {site: value.detach() for site, value in tap.values.items()}
    by_site = dict(zip(tap.values, found, strict=True))
    return Gradients(values, by_site, output.detach(), float(scalar.detach()))
