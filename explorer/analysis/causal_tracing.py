"""Causal tracing: what one value, at one layer and position, carries of two texts' difference.

Denoising: the corrupted text is passed, and the value is that of the clean text; what comes back
of the metric did not need the rest. Noising: the clean text is passed, and the value is that of
the corrupted one; what is lost of the metric could not do without it.
Sources: Locating and Editing Factual Associations in GPT (Meng et al. 2022), section 2; How to use
and interpret activation patching (Heimersheim and Nanda 2024), section 2.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from explorer.analysis.ablation_and_patching import recorded_text, shared_tokens
from explorer.analysis.batched_passes import RecordedPass, run_layers
from explorer.analysis.circuit_metrics import Contrast
from explorer.analysis.wiring import plain_wiring
from models.interventions import Edit, ReplaceAt
from models.trace import Trace, trace

RESIDUAL, ATTENTION, FEED_FORWARD = "resid_pre", "self_attn.out", "mlp.out"
"""What can be patched: the residual stream as a layer reads it, and what its two parts write."""


@dataclass(frozen=True, eq=False)
class TracedGrid:
    """The metric after each value alone was patched, (layers, t), and that of both texts.

    Row 0 of the residual stream is the embedding.
    """

    values: Tensor
    clean: float
    corrupted: float
    denoising: bool

    @property
    def normalised(self) -> Tensor:
        """0 where the metric is that of the corrupted text, 1 where that of the clean one."""
        return (self.values - self.corrupted) / (self.clean - self.corrupted)

    @property
    def share(self) -> Tensor:
        """How much of the difference came back by denoising, or was lost by noising."""
        return self.normalised if self.denoising else 1 - self.normalised

    @property
    def change(self) -> Tensor:
        """The same in the unit of the metric."""
        return self.share * (self.clean - self.corrupted)


@dataclass(frozen=True, eq=False)
class Tracing:
    """One way to trace a pair: which value is patched, and whether it is the clean text's.

    The two passes, of one text and of the other, are made when they are first asked for.
    """

    contrast: Contrast
    site: str
    denoising: bool

    @cached_property
    def base(self) -> RecordedPass:
        """The pass of one text, from which others branch off."""
        return recorded_text(self.contrast, corrupted=self.denoising)

    @cached_property
    def other(self) -> Trace:
        """What is patched, of the other text."""
        sites, read_at = [f"*.{self.site}"], self.contrast.read_at
        text = self.contrast.clean if self.denoising else self.contrast.corrupted
        return trace(self.contrast.model, text, sites=sites, read_at=read_at)

    @property
    def layers(self) -> int:
        return plain_wiring(self.contrast.config).layers

    @property
    def tokens(self) -> int:
        return self.contrast.clean.shape[1]

    @property
    def is_causal(self) -> bool:
        return self.contrast.model.last_stack.causal

    @property
    def first_changed(self) -> int:
        """The first position where patching can change anything."""
        return shared_tokens(self.contrast.clean, self.contrast.corrupted) * self.is_causal

    @property
    def cost(self) -> int:
        """About how many multiplications `columns` takes.

        On the mean a branch passes half of the layers and, in a causal stack, half of what lies
        behind the first difference.
        """
        branches = self.layers * (self.tokens - self.first_changed)
        stack = self.contrast.model.last_stack
        weights = sum(each.numel() for each in stack.blocks.parameters()) // 2
        computed = (self.tokens - self.first_changed) / 2 if self.is_causal else self.tokens
        return int(branches * computed * weights)

    def columns(self) -> Iterator[Tensor]:
        """For each position the metric where a layer's value there is patched, (layers,).

        In a causal stack the positions before the first difference need no pass, and that of
        another computes only what lies behind it: layers and positions from its own on.
        """
        unchanged = self.contrast.measured(self.base.trace.output)
        for position in range(self.tokens):
            if position < self.first_changed:
                yield unchanged.expand(self.layers)
            else:
                yield self._column(position)

    def _column(self, position: int) -> Tensor:
        stack = plain_wiring(self.contrast.config).stack
        base, part = replace(self.base, from_position=position), f"{stack}.self_attn"
        here = position - base.start(part)

        def edit_of(layer: int, rows: range) -> Edit:
            site = f"{stack}.{layer}.{self.site}"
            return ReplaceAt(site, here, self.other[site][0, position])

        logits = run_layers(base, part, range(self.layers), 1, edit_of)
        return torch.cat([self.contrast.outcome(each) for each in logits])

    def grid(self, columns: Sequence[Tensor]) -> TracedGrid:
        """All columns together, beside what both texts have alone."""
        ends = [
            float(self.contrast.measured(each.output)) for each in (self.base.trace, self.other)
        ]
        corrupted, clean = ends if self.denoising else ends[::-1]
        return TracedGrid(torch.stack(tuple(columns), 1), clean, corrupted, self.denoising)


def mean_grid(grids: Sequence[TracedGrid]) -> TracedGrid:
    """The mean over pairs of one length, traced in the same way."""
    values = torch.stack([each.values for each in grids]).mean(0)
    clean, corrupted = (
        sum(getattr(each, name) for each in grids) / len(grids) for name in ("clean", "corrupted")
    )
    return TracedGrid(values, clean, corrupted, grids[0].denoising)
