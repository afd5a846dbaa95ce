"""A pass in which only some edges carry the clean text, and all others the corrupted one.

What a reader reads is the corrupted residual stream, and, for every edge that is kept, what its
writer wrote in this pass minus what it wrote in the corrupted one. With all edges it is the pass
of the clean text, with none that of the corrupted text; a circuit restores as much of the metric
as its edges explain (faithfulness), and what is left without it is in all the other edges
(completeness).
Shapes: b circuits, w writers, r readers (`explorer.analysis.wiring`), t tokens, d width of the
model.
Sources: Have Faith in Faithfulness (Hanna et al. 2024), section 2; Sparse Feature Circuits (Marks
et al. 2024), section 3, for completeness; Towards Automated Circuit Discovery (Conmy et al. 2023),
section 3.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import torch
from torch import Tensor

from explorer.analysis.attribution_patching import writes, written_at
from explorer.analysis.contrast import Contrast
from explorer.analysis.wiring import Wiring, wiring_of
from models.tap import Tap
from models.trace import Trace, trace
from models.transformer import evaluating

NUMBERS_HELD = 1 << 25
"""Of all writes of a batch of circuits: 128 MB."""


@dataclass(frozen=True, eq=False)
class CorruptedPass:
    """What was read and written in the pass of the corrupted text, from which circuits differ."""

    contrast: Contrast
    wiring: Wiring
    read: dict[str, Tensor]
    written: Tensor
    metric: float

    @property
    def at_once(self) -> int:
        """How many circuits are passed together."""
        return max(1, NUMBERS_HELD // self.written.numel())

    def metrics(self, kept: Tensor) -> Tensor:
        """The metric (b,) of passes that keep these edges, (b, r, w) of bool.

        Costs a pass and r × w × t × d multiplications each.
        """
        return torch.cat([self._metrics(some) for some in kept.split(self.at_once)])

    def _metrics(self, kept: Tensor) -> Tensor:
        contrast = self.contrast
        with evaluating(contrast.model):
            output = contrast.model(
                contrast.clean.expand(len(kept), -1),
                read_at=contrast.read_at,
                tap=_CircuitTap(self, kept & self.wiring.is_edge),
            )
            return contrast.measured(output)


def corrupted_pass(contrast: Contrast) -> CorruptedPass:
    """The pass of the corrupted text. WiringError where a model has no edges."""
    wiring = wiring_of(contrast.config)
    sites = [*wiring.writers, *wiring.readers]
    seen: Trace = trace(contrast.model, contrast.corrupted, sites=sites, read_at=contrast.read_at)
    of_writers = {
        site: value if (value := seen[site][0]).dim() == 3 else value[None]
        for site in wiring.writers
    }
    return CorruptedPass(
        contrast,
        wiring,
        {site: seen[site] for site in wiring.readers},
        writes(contrast.model, wiring, of_writers),
        float(contrast.measured(seen.output)[0]),
    )


@dataclass(frozen=True)
class CorruptedPasses(Sequence[CorruptedPass]):
    """Those of several pairs, each made when it is asked for: one at a time is in memory."""

    contrasts: tuple[Contrast, ...]

    def __len__(self) -> int:
        return len(self.contrasts)

    @overload
    def __getitem__(self, at: int) -> CorruptedPass: ...
    @overload
    def __getitem__(self, at: slice) -> "CorruptedPasses": ...
    def __getitem__(self, at: int | slice) -> "CorruptedPass | CorruptedPasses":
        if isinstance(at, slice):
            return CorruptedPasses(self.contrasts[at])
        return corrupted_pass(self.contrasts[at])


class _CircuitTap(Tap):
    """Collects what is written, and gives every reader what its kept edges carry."""

    def __init__(self, base: CorruptedPass, kept: Tensor, prefix: str = "") -> None:
        self._base, self._kept, self._prefix = base, kept, prefix
        self._rows = base.wiring.rows_at
        t, d = base.written.shape[1:]
        self._differences = base.written.new_zeros(len(kept), len(base.written), t * d)
        self._done = [0]

    def at(self, scope: str) -> Tap:
        inner = type(self).__new__(type(self))
        inner.__dict__.update(self.__dict__)  # the same writes, a longer prefix
        inner._prefix = f"{self._prefix}{scope}."
        return inner

    def wants(self, name: str) -> bool:
        site = self._prefix + name
        return site in self._rows or site in self._base.wiring.writers

    def __call__(self, name: str, value: Tensor) -> Tensor:
        site = self._prefix + name
        if site in self._base.wiring.writers:
            self._collect(site, value)
        return self._read(site, value) if site in self._rows else value

    def _collect(self, site: str, value: Tensor) -> None:
        """Add what is written here, minus the same of the corrupted pass."""
        base, first = self._base, self._done[0]
        value = value if value.dim() == 4 else value[:, None]
        value = written_at(base.contrast.model, base.wiring, site, value)
        rows = slice(first, first + value.shape[1])
        self._differences[:, rows] = (value - base.written[rows]).flatten(2)
        self._done[0] = rows.stop

    def _read(self, site: str, value: Tensor) -> Tensor:
        base, count = self._base, self._done[0]
        kept = self._kept[:, self._rows[site], :count].to(value.dtype)
        carried = (kept @ self._differences[:, :count]).unflatten(-1, base.written.shape[1:])
        corrupted = base.read[site]
        return corrupted + (carried if corrupted.dim() == 4 else carried[:, 0])
