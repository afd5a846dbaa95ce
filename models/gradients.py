"""Gradients of one number of the output by the values that a tap is shown."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from models.interventions import Edit
from models.trace import RecordingTap
from models.transformer import EVERYWHERE, TransformerBase, evaluating


class GradientError(ValueError):
    """A gradient that is not finite, in one sentence."""


@dataclass(frozen=True, eq=False)
class Gradients:
    """The values of the sites, and ∂`scalar`/∂value, of the same shapes."""

    values: dict[str, Tensor]
    gradients: dict[str, Tensor]
    output: Tensor
    scalar: float


Take = Callable[[str, Tensor], None]
"""Called with the name of a site and the gradient there."""


class _Watched(torch.autograd.Function):
    """The same value, whose gradient `take` gets. The backward pass ends at the anchor."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, anchor: Tensor, take: Callable[[Tensor], None]) -> Tensor:
        ctx.take = take
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        ctx.take(gradients[0])
        return gradients[0], None, None


class _WatchingTap(RecordingTap):
    """Calls `take` with the gradient at each site, and records values if it `keeps` them."""

    def __init__(
        self, sites: str | Sequence[str], edits: Sequence[Edit], take: Take, keeps: bool
    ) -> None:
        super().__init__(sites, edits)
        self.anchor = torch.zeros((), requires_grad=True)
        self._take, self._keeps = take, keeps

    def __call__(self, name: str, value: Tensor) -> Tensor:
        value, site = super().__call__(name, value), self._prefix + name
        self.values.pop(site, None)
        if not (self._sites.match(site) and value.is_floating_point()):
            return value
        if self._keeps:
            self.values[site] = value.detach()
        watched: Tensor = _Watched.apply(value, self.anchor, partial(self._take, site))
        return watched


def gradients(
    model: TransformerBase,
    *inputs: Tensor,
    of: Callable[[Tensor], Tensor],
    sites: str | Sequence[str],
    edits: Sequence[Edit] = (),
    read_at: slice = EVERYWHERE,
    take: Take | None = None,
    **how: Any,
) -> Gradients:
    """The values of `sites` in one forward pass, and the gradient of `of(output)` by each.

    `of` gives one number; the sum over a batch, whose rows are independent, gives the gradients of
    each row. The other arguments are those of `trace`. With `take`, which is called from the
    output backwards, no value or gradient is kept. Costs a forward and a backward pass. Errors
    are those of `trace`; GradientError where a gradient is not finite.
    Source: Attribution Patching (Nanda 2023), on gradients by activations.
    """
    by_site: dict[str, Tensor] = {}
    taking = by_site.__setitem__ if take is None else take

    def checked(site: str, gradient: Tensor) -> None:
        if not all(bool(extreme.isfinite()) for extreme in gradient.aminmax()):  # makes no copy
            raise GradientError(f"The gradient at {site} is not finite, so it says nothing.")
        taking(site, gradient)

    tap = _WatchingTap(sites, edits, checked, keeps=take is None)
    with evaluating(model), torch.enable_grad():
        output = model(*inputs, read_at=read_at, tap=tap, **how)
        tap.check_sites()
        scalar = of(output)
        if scalar.numel() != 1:
            raise ValueError(f"A gradient is that of one number, not of {tuple(scalar.shape)}.")
        torch.autograd.grad(scalar, tap.anchor, allow_unused=True)
    all_sites = {s: by_site.get(s, torch.zeros_like(v)) for s, v in tap.values.items()}
    return Gradients(tap.values, all_sites, output.detach(), float(scalar.detach()))
