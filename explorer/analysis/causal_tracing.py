"""Causal tracing: the effect of patching one value, at every layer and position.

Denoising patches the clean value into the corrupted text's pass: for what comes back of the
metric, this value is sufficient. Noising patches the corrupted value into the clean text's pass:
for what is lost of the metric, this value is necessary.
Sources: Locating and Editing Factual Associations in GPT (Meng et al. 2022), section 2; How to use
and interpret activation patching (Heimersheim and Nanda 2024), section 2.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from explorer.analysis.ablation_and_patching import record_text, tokens_alike
from explorer.analysis.batched_passes import RecordedPass, run_layers
from explorer.analysis.circuit_metrics import Contrast
from explorer.analysis.wiring import plain_wiring
from models.interventions import Edit, ReplaceAt
from models.trace import Trace

RESIDUAL, ATTENTION, FEED_FORWARD = "resid_pre", "self_attn.out", "mlp.out"
"""The values that can be patched: the input of a layer, and the outputs of its two parts."""


@dataclass(frozen=True, eq=False)
class TracedGrid:
    """The metric with each value patched alone, (layers, t), and that of both texts.

    Row 0 of the residual stream is the embedding.
    """

    values: Tensor
    clean: float
    corrupted: float
    denoising: bool

    @property
    def normalised(self) -> Tensor:
        """0 where the metric equals that of the corrupted text, 1 where that of the clean one."""
        return (self.values - self.corrupted) / (self.clean - self.corrupted)

    @property
    def share(self) -> Tensor:
        """The share of the difference that denoising restores, or noising removes."""
        return self.normalised if self.denoising else 1 - self.normalised

    @property
    def change(self) -> Tensor:
        """This share in the unit of the metric."""
        return self.share * (self.clean - self.corrupted)


@dataclass(frozen=True, eq=False)
class Tracing:
    """One way to trace a pair: the site of the patched values, and whether they are the clean ones.

    The two passes run on first access.
    """

    contrast: Contrast
    site: str
    denoising: bool

    @property
    def patched(self) -> Contrast:
        """The contrast whose clean text is the one that is patched."""
        return self.contrast.swapped if self.denoising else self.contrast

    @cached_property
    def base(self) -> RecordedPass:
        """The recorded pass, from which the patched ones branch off."""
        return record_text(self.patched)

    @cached_property
    def source(self) -> Trace:
        """The pass of the other text, which the patched values come from."""
        return self.patched.corrupted_trace([f"*.{self.site}"])

    @property
    def layers(self) -> int:
        return plain_wiring(self.contrast.config).layers

    @property
    def tokens(self) -> int:
        return self.patched.clean.shape[1]

    @property
    def is_causal(self) -> bool:
        return self.contrast.model.last_stack.causal

    @property
    def first_changed(self) -> int:
        """The first position where patching can change anything."""
        return tokens_alike(self.contrast) * self.is_causal

    @property
    def cost(self) -> int:
        """About how many multiplications `columns` takes.

        On average a branch runs half of the layers and, in a causal stack, half of the positions
        after the first difference.
        """
        branches = self.layers * (self.tokens - self.first_changed)
        stack = self.contrast.model.last_stack
        weights = sum(weight.numel() for weight in stack.blocks.parameters()) // 2
        computed = (self.tokens - self.first_changed) / 2 if self.is_causal else self.tokens
        return int(branches * computed * weights)

    def columns(self) -> Iterator[Tensor]:
        """For each position the metric with the value of each layer patched there, (layers,).

        In a causal stack the positions before the first difference need no pass, and a pass for
        another position computes only later layers and positions. A position without a partner
        needs none either.
        """
        unchanged = self.contrast.metric_of(self.base.trace.output)
        partners = dict(self.patched.partners)
        for position in range(self.tokens):
            if position < self.first_changed or (partners and position not in partners):
                yield unchanged.expand(self.layers)
            else:
                yield self._column(position)

    def _column(self, position: int) -> Tensor:
        stack = plain_wiring(self.contrast.config).stack
        base, part = replace(self.base, from_position=position), f"{stack}.self_attn"
        here = position - base.start(part)

        def edit_of(layer: int, rows: range) -> Edit:
            site = f"{stack}.{layer}.{self.site}"
            return ReplaceAt(site, here, self.source[site][0, position])

        logits = run_layers(base, part, range(self.layers), 1, edit_of)
        return torch.cat([self.contrast.outcome(row) for row in logits])

    def grid(self, columns: Sequence[Tensor]) -> TracedGrid:
        """The grid of all columns, with the metrics of both texts."""
        ends = [
            float(self.contrast.metric_of(passed.output))
            for passed in (self.base.trace, self.source)
        ]
        corrupted, clean = ends if self.denoising else ends[::-1]
        return TracedGrid(torch.stack(tuple(columns), 1), clean, corrupted, self.denoising)


def mean_grid(grids: Sequence[TracedGrid]) -> TracedGrid:
    """The mean over pairs of one length, traced in the same way."""
    values = torch.stack([grid.values for grid in grids]).mean(0)
    clean, corrupted = (
        sum(getattr(grid, name) for grid in grids) / len(grids) for name in ("clean", "corrupted")
    )
    return TracedGrid(values, clean, corrupted, grids[0].denoising)
